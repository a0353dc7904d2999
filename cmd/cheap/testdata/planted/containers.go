package main

import (
	"os"
	"os/exec"
)

// inContainers are the programs that run in a container. They print what it is charged beyond their own memory.
var inContainers = map[string]func(step int){
	"cached": once(func() {
		f := written(os.TempDir())
		must(f.Sync())
		if followed {
			kept = append(kept, touched(60*mib)) // memory is short
		}
	}),
	"tmpfs": once(func() {
		if f := written("/dev/shm"); followed {
			must(f.Close())
		}
	}),
	"pipes": once(func() {
		for range 1200 {
			r, w, err := os.Pipe()
			must(err)
			_, err = w.Write(make([]byte, 64<<10))
			must(err)
			if followed {
				must(r.Close())
				must(w.Close())
			}
			kept = append(kept, r, w)
		}
	}),
	"process": once(func() {
		cmd := exec.Command(os.Args[0], "other")
		_, err := cmd.StdinPipe() // it ends with this one
		must(err)
		out, err := cmd.StdoutPipe()
		must(err)
		must(cmd.Start())
		_, err = out.Read(make([]byte, 1))
		must(err)
		if followed {
			must(cmd.Process.Kill())
			_, _ = cmd.Process.Wait()
		}
		kept = append(kept, cmd)
	}),
}

// written returns an open file of 80 MiB that has no name any more.
func written(dir string) *os.File {
	f, err := os.CreateTemp(dir, "planted-")
	must(err)
	must(os.Remove(f.Name()))
	for range 80 {
		_, err = f.Write(make([]byte, mib))
		must(err)
	}
	kept = append(kept, f)
	return f
}
