package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// writable returns an error if a file cannot be written. It does not change the
// file.
func writable(name, file string) error {
	_, before := os.Lstat(file)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return usagef("%s: %v; name a file that can be written", name, err)
	}
	f.Close()
	if errors.Is(before, fs.ErrNotExist) {
		os.Remove(file)
	}
	return nil
}

// writeFile makes a file, and removes what could not be written whole.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if info, e := os.Lstat(name); err != nil && e == nil && info.Mode().IsRegular() {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
