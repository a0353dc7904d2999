// Package sqlite inserts and reads rows of SQLite in three ways: with a cgo call for each call
// of SQLite, with a loop written in C, and with lists of calls. It is to be built with
// -tags=sqlite3,libsqlite3.
package sqlite
