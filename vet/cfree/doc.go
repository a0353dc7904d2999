// Package cfree defines an Analyzer that finds C memory which is not freed.
//
// # Analyzer cfree
//
// cfree: report C memory that is not freed
//
// The results of C.CString, C.CBytes, C.malloc and its kin, of functions in C of the package that
// return what malloc has returned, or put it where an argument points to, and of cheap's Malloc
// belong to the caller. The analyzer reports one that is neither freed nor handed on, on some path
// through the function:
//
//	func open(name string) *C.db {
//		cname := C.CString(name)
//		return C.db_open(cname) // cname is not freed
//	}
//
// A function in Go that frees its argument is as good as C.free, and one that returns such memory
// is looked at like C.CString, in other packages as well.
//
// A value of a type with a method that releases what C has made, such as a Mat with Close, is
// looked at as well if the type has no finalizer and no cleanup, and if the function that has
// returned it is seen to make it.
//
// What a function returns, stores in a field or outside of it, sends, or passes to a function that is not
// known is not looked at any more. A function of C is expected to keep nothing, unless its name
// says otherwise, as free, take, adopt, steal and directly do, or its definition, which is looked for above
// import "C" and in the files in C beside, or the comment of its declaration there and in the headers that are
// included. The comment may say as well that the caller frees the result, or that it must not. What is put into a
// field of a part of an object of C, such as an entry that C.list_add(list) has returned, belongs to the object, and
// goes where that goes. What main, init and a sync.Once allocate ends with the process, and is not reported.
//
// What the functions of well known libraries of C give, and by which function it is released, is in a table: that sqlite3_exec gives a
// message for sqlite3_free, or deflateInit what deflateEnd releases. A definition in the package wins, and one that does nothing but call
// such a function is as good as that.
//
// The findings are of these kinds:
//
//   - dropped: nothing has the result.
//   - never: nothing in the function frees it, or a method frees other fields of a struct, and nothing frees this one.
//   - path: it is freed, but not on the way to this return, or to a panic from which the function recovers.
//   - object: what C has made, as a library or a name such as new or open says, is released on other ways through the function, or by a
//     field that the package frees if a library says that it has to be, but not at this return; or nothing releases what a library says has to be. So is a cgo.Handle, unless the package
//     deletes such as come from C, and what a runtime.Pinner pins. That C has failed to make it is known from what it has given besides, and
//     from what the function made of that.
//   - beside: a function in Go returns it with an error as well, and its caller returns at the error.
//   - overwritten: the variable gets another value before.
//   - loop: a defer in a loop without a known end frees it.
//   - pool: a sync.Pool makes it, and drops it.
//   - realloc: the only pointer to the block gets the result of C.realloc, which may be nil.
//   - twice: a variable is freed, and freed again by the same function on the same path, or by a defer, or what a finalizer frees as well.
//     That is looked at for each variable that a function of C with a name such as free, destroy or delete is given, and in a loop, and for
//     methods that pass a field to one and leave it there, if a library or the definition says that the function frees. An object that
//     has got a finalizer from its constructor, and gets another, ends the program.
//   - after: memory is used when it is freed, also through a slice or a string over it, by a defer that runs later, or by a function
//     literal that outlives a defer; so is a child, such as a cursor, used or released behind its parent; or a cgo.Handle when it is deleted.
//   - early: a defer frees a variable that is nil there, and gets its value later by its address; or a finalizer belongs to a variable
//     of which the function returns a copy, or to the parent of an object that does not keep it.
//   - wrong: C.free, or what releases something else, gets memory of Go, what belongs to something else, or what another function has
//     to release, as a comment or a library says; or SetFinalizer gets memory of C, or a part of an object.
//   - size: the block for n elements has n bytes.
//   - kept: C keeps a pointer to memory of Go, as its comment, its name or the table of libraries says, or gets one in its own memory,
//     and nothing pins that.
//   - zero: C gets the bytes of a string of Go as a string of its own.
//
// Where the function frees the memory nowhere, and defers do not add up in a loop, the fix is a
// defer behind the allocation. A string that is dropped in a call of C gets a variable for that, where
// the call is simple; in a loop it is freed behind the call. There is a fix only if the functions of C that
// are given the memory forget it: their names say that they read, such as find or print, or their library is
// known to copy strings, such as GTK. The fix includes the header of free and imports unsafe where that is needed.
package cfree
