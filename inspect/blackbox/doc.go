// Package blackbox keeps what a program that the kernel kills would have said of its memory. Take it
// in a server that runs in a container.
//
//	box, err := blackbox.Start(blackbox.Options{File: "/var/lib/guestbook/box"})
//	if err != nil {
//		log.Print(err)
//	}
//	defer box.Stop()
//
// A goroutine writes once a second what the memory of the process is for into a file of 20 KiB: the
// parts of the resident memory, what the container is charged, a verdict, pools and heaps, and, with
// module cmem in the program, the libraries and stacks of C that have the most bytes in use. It writes
// more often while memory grows fast. The file outlives the process, however that ends, and
//
//	cheap postmortem /var/lib/guestbook/box
//
// prints it. It does not outlive a crash of the machine, unless the kernel has written it to the disk
// by then. In a container the file has to be on a volume that stays.
//
// When the limit of the container is near, a line on the standard error says what holds the memory, or
// [Options].OnNear is called.
//
// The file has names of functions, files, pools and libraries, and figures. It has no contents of
// memory, no arguments and no environment, and only its owner may read it.
//
// On systems other than Linux the kernel says less: the parts of Go and of package cheap are there, and
// what is resident, the container and the notice are not. On Windows no lock tells two processes with
// one path from each other, nor a process that runs from one that has ended.
package blackbox
