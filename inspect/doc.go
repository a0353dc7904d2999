// Package inspect shows the memory outside the Go heap that package cheap manages, and the
// resources that package own owns. Take it in a program that runs in production: what it shows
// without a setting is counted anyway, and importing the package registers and starts nothing.
//
//	inspect.EnableLeaks()                                            // at the beginning of main: who has forgotten Close
//	inspect.SetRate(inspect.DefaultRate)                             // samples for the profiles, and for Where
//	http.Handle("/debug/cheap/", inspect.Handler(inspect.Options{})) // a page with all that follows
//
//	for _, s := range inspect.ReadMetrics() { // the metrics of docs/reference/metrics.md
//		fmt.Println(s.Metric.Name, s.Labels, s.Value)
//	}
//	fmt.Print(inspect.Where(10))      // the accounts and the stacks that hold the most
//	err := inspect.WriteHeap(file)    // which calls have allocated what is in use, for go tool pprof
//	err = inspect.WriteSuspects(file) // the resources that nobody has closed, and who made them
//
// [SetGuardRate] and [Monitor] find out what has crashed a program, and package blackbox what held the
// memory of one that the kernel has killed. Package leaktest fails tests that leak, and package vars has
// the metrics for expvar.
package inspect
