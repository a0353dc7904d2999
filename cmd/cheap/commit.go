package main

// commit is the commit of which a release was made. It is empty in a checkout; the command in
// tools/release writes it into the commit of the tags, which has no other way to name its source.
const commit = ""
