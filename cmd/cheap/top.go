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
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/cheapgo/cheap/cmd/cheap/internal/top"
	"github.com/cheapgo/cheap/internal/page/pagejson"
)

const topUsage = `Top shows the memory of a program that has the page of package inspect, or the
C heap of any Go program.

Usage:

	cheap top [flags] URL
	cheap top [-every time] -pid process

URL is the address of the page. Where it has no path, /debug/cheap/ is meant, and
http:// may be left out: cheap top localhost:6060

With -pid the program needs no page. The screen is the report of a recording that
begins now, and ends with this command, which prints the last one: see
cheap record -h.

In a terminal, these keys change by what the lists of a page are sorted: b is
bytes, c count, r rate, n name. The key q ends it.

Flags:

%s`

// topSettings is what the arguments of `cheap top` ask for.
type topSettings struct {
	address string // of all.json
	once    bool
	every   time.Duration
	sort    string // of top.Keys
	pid     int    // of a process that has no page, or 0
}

// parseTop reads the arguments. It returns flag.ErrHelp where they ask for help, and a usageError where they are wrong.
func parseTop(args []string) (*topSettings, *flag.FlagSet, error) {
	s := new(topSettings)
	flags := flag.NewFlagSet("cheap top", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&s.once, "once", false, "print once, and end; not with -pid")
	flags.DurationVar(&s.every, "every", 2*time.Second, "read the figures after this `time`, again and again")
	flags.IntVar(&s.pid, "pid", 0, "show the C heap of the `process` with this number, which goes on as before")
	flags.StringVar(&s.sort, "sort", top.Keys[0], "sort the lists by this `key`: "+strings.Join(top.Keys, ", "))
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, flags, err
	case err != nil:
		return nil, flags, usagef("%v; the flags are -every, -once, -pid and -sort", err)
	case !slices.Contains(top.Keys, s.sort):
		return nil, flags, usagef("-sort: %q is no key; the keys are %s", s.sort, strings.Join(top.Keys, ", "))
	case s.every < 100*time.Millisecond:
		return nil, flags, usagef("-every: %v is too short; the least is 100ms", s.every)
	case s.pid < 0 || s.pid == 0 && isSet(flags, "pid"):
		return nil, flags, usagef("-pid: %d is no number of a process", s.pid)
	case s.pid > 0 && s.once:
		return nil, flags, usagef("-once: a recording begins empty; use cheap record -pid %d -for 30s", s.pid)
	case s.pid > 0 && flags.NArg() > 0:
		return nil, flags, usagef("-pid needs no address; leave %s out", flags.Arg(0))
	case s.pid > 0:
		return s, flags, nil
	case flags.NArg() == 0:
		return nil, flags, usagef("no address is given; give that of the page, such as localhost:6060, or a process with -pid")
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
func topCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	s, flags, err := parseTop(args)
	if errors.Is(err, flag.ErrHelp) {
		return help(stdout, topUsage, flags)
	}
	if err != nil {
		return err
	}
	t := topScreen{settings: s, Screen: top.Screen{Sort: s.sort, Width: 80}}
	if s.pid == 0 {
		return t.show(ctx, stdin, stdout)
	}
	return watchPid(ctx, s.pid, stdout, func(ctx context.Context, report func(io.Writer) error) error {
		t.report = report
		return t.show(ctx, stdin, stdout)
	})
}

// show shows a screen after the other, until the context or a key ends it.
func (t *topScreen) show(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s := t.settings
	file, ok := stdout.(*os.File)
	t.is = ok && !s.once && term.IsTerminal(int(file.Fd()))
	var keys <-chan byte
	if in, ok := stdin.(*os.File); ok && t.is && term.IsTerminal(int(in.Fd())) {
		if was, err := term.MakeRaw(int(in.Fd())); err == nil {
			defer term.Restore(int(in.Fd()), was) // an error is that of a terminal that has gone
			t.raw, keys = true, readKeys(in)
		}
	}
	next := time.NewTicker(s.every)
	defer next.Stop()
	for {
		if err := t.read(ctx); err != nil {
			if ctx.Err() != nil && !s.once {
				return nil
			}
			return err
		}
		for again := false; !again; {
			if t.is {
				if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
					t.Width, t.Height = w, h-1
				}
			}
			if err := t.write(stdout); err != nil || s.once {
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-next.C:
				again = true
			case key := <-keys:
				if !t.press(key) {
					return nil
				}
			}
		}
	}
}

// topScreen is what `cheap top` shows, and from where it has that.
type topScreen struct {
	top.Screen
	settings *topSettings
	is       bool // a terminal, which is cleared before each frame
	raw      bool // the terminal has no line discipline
	turns    int
	report   func(io.Writer) error // writes what is recorded of a process; nil with a page
	text     string                // that
	failed   error                 // of the last read; the old figures stay
}

// suspectsEvery says in which reads the suspects are read, because that looks at every owner.
const suspectsEvery = 5

// read reads the figures. In a terminal an error after the first read is shown, and not returned.
func (t *topScreen) read(ctx context.Context) error {
	if t.report != nil {
		var text strings.Builder
		err := t.report(&text)
		t.text = text.String()
		t.turns++
		return err
	}
	r, err := readReport(ctx, t.settings.address)
	if t.failed = err; err != nil {
		if t.Now == nil || !t.is || ctx.Err() != nil {
			return err
		}
		return nil
	}
	t.Before, t.Now = t.Now, r
	if t.turns%suspectsEvery == 0 {
		f := new(pagejson.SuspectFigures)
		if text, err := get(ctx, strings.TrimSuffix(t.settings.address, "all.json")+"suspects.json", 30*time.Second, ""); err == nil && json.Unmarshal(text, f) == nil {
			t.Suspects = f // else a page that has none
		}
	}
	t.turns++
	return nil
}

// press does what a key asks for. It reports false if the command is to end.
func (t *topScreen) press(key byte) bool {
	const interrupt = 3 // Ctrl-C, where the terminal sends no signal
	if key == 'q' || key == interrupt {
		return false
	}
	for _, k := range top.Keys {
		if k[0] == key {
			t.Sort = k
		}
	}
	return true
}

// write writes a frame.
func (t *topScreen) write(stdout io.Writer) error {
	s := t.Screen
	if t.failed != nil && s.Height > 2 {
		s.Height -= 2
	}
	lines := top.Fold(t.text, s.Width, s.Height)
	if t.report == nil {
		lines = top.Frame(s)
	}
	text := strings.Join(lines, "\n") + "\n"
	switch {
	case t.is:
		text = "\x1b[H\x1b[2J" + text
	case t.turns > 1:
		text = "\n" + text
	}
	if t.failed != nil {
		text += fmt.Sprintf("\nThe figures are old: %v\n", t.failed)
	}
	if t.raw {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	_, err := io.WriteString(stdout, text)
	return err
}

// readKeys returns what is pressed in a terminal, until the command ends.
func readKeys(in io.Reader) <-chan byte {
	keys := make(chan byte)
	go func() {
		var key [1]byte
		for {
			if n, err := in.Read(key[:]); err != nil {
				return
			} else if n > 0 {
				keys <- key[0]
			}
		}
	}()
	return keys
}

// readReport reads the figures of a page.
func readReport(ctx context.Context, address string) (*pagejson.Figures, error) {
	text, err := get(ctx, address, 30*time.Second, "is it the page of package inspect?")
	if err != nil {
		return nil, err
	}
	r := new(pagejson.Figures)
	if err := json.Unmarshal(text, r); err != nil || len(r.Tables) == 0 {
		return nil, fmt.Errorf("%s does not answer as the page of package inspect does", address)
	}
	return r, nil
}
