package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/cheapgo/cheap/cmd/cheap/internal/top"
	"github.com/cheapgo/cheap/inspect"
)

const topUsage = `Top shows the memory of a program that has the page of package inspect.

Usage:

	cheap top [flags] URL

URL is the address of the page. Where it has no path, /debug/cheap/ is meant, and
http:// may be left out: cheap top localhost:6060

Flags:

%s`

// topSettings is what the arguments of `cheap top` ask for.
type topSettings struct {
	address string // of all.json
	once    bool
	every   time.Duration
}

// parseTop reads the arguments, as parseReplay does.
func parseTop(args []string) (*topSettings, *flag.FlagSet, error) {
	s := new(topSettings)
	flags := flag.NewFlagSet("cheap top", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&s.once, "once", false, "print once, and end")
	flags.DurationVar(&s.every, "every", 2*time.Second, "read the figures after this `time`, again and again")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, flags, err
	case err != nil:
		return nil, flags, usagef("%v; the flags are -every and -once", err)
	case s.every < 100*time.Millisecond:
		return nil, flags, usagef("-every: %v is too short; the least is 100ms", s.every)
	case flags.NArg() == 0:
		return nil, flags, usagef("no address is given; give that of the page, such as localhost:6060")
	case flags.NArg() > 1 && strings.HasPrefix(flags.Arg(1), "-"):
		return nil, flags, usagef("the flag %s follows the address; put the flags before it", flags.Arg(1))
	case flags.NArg() > 1:
		return nil, flags, usagef("unexpected argument %q; there is one address", flags.Arg(1))
	}
	s.address, err = topAddress(flags.Arg(0))
	return s, flags, err
}

// topAddress returns the address of the figures of a page.
func topAddress(arg string) (string, error) {
	full := arg
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return "", usagef("%q is no address of a page; it is like http://localhost:6060/debug/cheap/", arg)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/debug/cheap/"
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.Path += "all.json"
	return u.String(), nil
}

// topCommand is `cheap top`. An interrupt is how it ends.
func topCommand(ctx context.Context, args []string, stdout io.Writer) error {
	s, flags, err := parseTop(args)
	if errors.Is(err, flag.ErrHelp) {
		return help(stdout, topUsage, flags)
	}
	if err != nil {
		return err
	}
	file, ok := stdout.(*os.File)
	screen := ok && term.IsTerminal(int(file.Fd()))
	width, height := 80, 0
	var before *inspect.Figures
	for {
		r, err := readReport(ctx, s.address)
		switch {
		case ctx.Err() != nil && !s.once:
			return nil
		case err != nil && (before == nil || s.once || !screen):
			return err
		}
		if screen {
			if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
				width, height = w, h-1
			}
		}
		var text string
		if err != nil {
			text = fmt.Sprintf("\n%v\n", err) // below the old figures
		} else {
			most := height
			if s.once {
				most = 0
			}
			text = strings.Join(top.Frame(r, before, width, most), "\n") + "\n"
			if screen && !s.once {
				text = "\x1b[H\x1b[2J" + text
			}
			before = r
		}
		if _, err := io.WriteString(stdout, text); err != nil || s.once {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.every):
		}
		if !screen {
			if _, err := io.WriteString(stdout, "\n"); err != nil {
				return err
			}
		}
	}
}

// readReport reads the figures of a page.
func readReport(ctx context.Context, address string) (*inspect.Figures, error) {
	text, err := get(ctx, address, 30*time.Second, "is it the page of package inspect?")
	if err != nil {
		return nil, err
	}
	r := new(inspect.Figures)
	if err := json.Unmarshal(text, r); err != nil || len(r.Tables) == 0 {
		return nil, fmt.Errorf("%s does not answer as the page of package inspect does", address)
	}
	return r, nil
}
