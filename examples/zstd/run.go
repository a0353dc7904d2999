//go:build cgo && zstd

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/examples/zstd/internal/zstd"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

type options struct {
	decompress bool
	level      int
	forget     int
	files      []string
}

// parse parses arguments. An error is one line.
func parse(args []string) (o options, help string, err error) {
	var text strings.Builder
	flags := flag.NewFlagSet("zstd", flag.ContinueOnError)
	flags.SetOutput(&text)
	flags.Usage = func() {
		fmt.Fprintln(&text, "usage: zstd [flags] [file...]")
		flags.PrintDefaults()
	}
	flags.BoolVar(&o.decompress, "d", false, "decompress")
	flags.IntVar(&o.level, "level", 3, "compress at this `level`, from 1 to 19")
	flags.IntVar(&o.forget, "forget", 0, "compress so many `times`, with compressors that are forgotten, and print the memory")
	err = flags.Parse(args)
	switch {
	case err != nil:
	case o.level < 1 || o.level > 19:
		err = fmt.Errorf("-level %d: it is from 1 to 19", o.level)
	case o.forget < 0 || o.forget > 0 && o.decompress:
		err = errors.New("-forget takes a number of compressions, and no -d")
	}
	o.files = flags.Args()
	return o, text.String(), err
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, help, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "zstd:", err)
		return 2
	}
	from, closeFiles, err := open(o.files, stdin)
	if err == nil {
		defer closeFiles()
		switch {
		case o.decompress:
			err = decompress(stdout, from)
		case o.forget > 0:
			err = compare(ctx, stdout, from, o)
		default:
			err = compress(stdout, from, o.level)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "zstd:", err)
		return 1
	}
	return 0
}

// open returns the files one after the other, or stdin if none is named.
func open(files []string, stdin io.Reader) (from io.Reader, closeFiles func(), err error) {
	var opened []*os.File
	closeFiles = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	if len(files) == 0 {
		return stdin, closeFiles, nil
	}
	var readers []io.Reader
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			closeFiles()
			return nil, nil, err
		}
		opened, readers = append(opened, f), append(readers, f)
	}
	return io.MultiReader(readers...), closeFiles, nil
}

// compress writes one frame.
func compress(to io.Writer, from io.Reader, level int) error {
	z, err := zstd.NewWriter(to, level)
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, from); err != nil {
		z.Close() // to have the memory back; the error is the same
		return err
	}
	return z.Close() // it ends the frame, so its error matters
}

func decompress(to io.Writer, from io.Reader) error {
	z, err := zstd.NewReader(from)
	if err != nil {
		return err
	}
	defer z.Close() // it has nothing to say
	_, err = io.Copy(to, z)
	return err
}

// compare compresses the input many times, without package pace and with it, and prints the
// most that was in use by zstd. All compressors are forgotten.
func compare(ctx context.Context, stdout io.Writer, from io.Reader, o options) error {
	input, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	for _, paced := range []bool{false, true} {
		name := "own"
		if paced {
			name = "own and pace"
			if err := pace.Start(pace.Options{}); err != nil {
				return err
			}
			defer pace.Stop()
		}
		most, err := forget(ctx, input, o)
		if err == nil {
			err = settle(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%-12s  at most %8.1f MiB in use, %d bytes after collections\n", name, float64(most)/(1<<20), zstd.InUse())
	}
	return nil
}

// forget compresses input many times, and returns the most bytes in use.
func forget(ctx context.Context, input []byte, o options) (most int64, err error) {
	for range o.forget {
		if err := ctx.Err(); err != nil {
			return most, err
		}
		z, err := zstd.NewWriter(io.Discard, o.level)
		if err != nil {
			return most, err
		}
		if _, err := io.Copy(z, bytes.NewReader(input)); err != nil {
			return most, err
		}
		if err := z.Flush(); err != nil {
			return most, err
		}
		most = max(most, zstd.InUse())
	}
	return most, nil
}

// settle waits until all contexts are freed. A program needs that only to show that it
// does not leak.
func settle(ctx context.Context) error {
	for zstd.InUse() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.GC()
		if err := own.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}
