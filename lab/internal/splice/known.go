package splice

// known are the declarations that were read for the change, with their digests:
// those of Go 1.26 and 1.27, which are the same. If a later version has others, read
// them, check that what package splice relies on still holds, and replace the
// digests here.
var known = map[string]string{
	// The list, and the walk.
	"special":                         "e0eca3b5a159704e",
	"(*mspan).specialFindSplicePoint": "8f6587d6f269c816",

	// They insert or remove a special, at the place that a walk has just found.
	"addspecial":             "fb96359e6c5229ea",
	"removespecial":          "b10c0fada5859e90",
	"Cleanup.Stop":           "7bb57b944762fb2d",
	"(*mspan).decPinCounter": "8ba362dff8658dca",
	"(*mspan).incPinCounter": "dd8bac4e8ef7fb5f",
	"clearCleanupContext":    "f5a72faca99f0655",
	"getCleanupContext":      "b4fd90d7d893bbfe", // without the lock, but with the world stopped
	"getOrSetBubbleSpecial":  "1417252f619afa19",

	// The sweep, which unlinks by an iterator.
	"(*sweepLocked).sweep":          "526424126ea4b464",
	"specialsIter":                  "ecff51f5b9be6392",
	"newSpecialsIter":               "0bbad942228d17ba",
	"(*specialsIter).next":          "6fc38b678868539d",
	"(*specialsIter).unlinkAndNext": "f2c351ec15e9ea2b",
	"(*specialsIter).valid":         "c25311e46ffc15e7",

	// They only read.
	"dumpmemprof":         "b7c414f6dcc82309",
	"dumproots":           "487e9445e4047926",
	"forEachSpecial":      "5c38b2239723925d",
	"gcTestIsReachable":   "81a509622dbdf420",
	"getWeakHandle":       "68cf772b0d7af89b",
	"inTinyBlock":         "8a8ca77e220451b3",
	"markrootSpans":       "27d4e7dc2c304813",
	"pinnerGetPinCounter": "b84c275c990da527",
}
