// Package repotest has no code, only tests of the repository as a whole: which
// modules it has and what they require, who imports whom, whether a program
// can depend on a checkout as README.md says, and whether what the documents
// name is there and what the guide shows is run.
//
// The tests run the go command and read the files of the tree. They need no
// network beyond what building the module needs.
package repotest
