// Package inspect shows the memory outside the Go heap that package cheap manages, and the
// resources that package own owns: as numbers, as profiles, as lists of what was not closed,
// and as a page.
//
// The package is cheap enough to stay in a program that runs in production. Importing it
// registers nothing and starts nothing.
package inspect
