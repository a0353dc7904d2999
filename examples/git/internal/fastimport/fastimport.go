// Package fastimport makes git repositories with long histories of known contents.
// It needs git, and does not need libgit2.
package fastimport

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/examples/git/internal/churn"
)

// Make makes a bare repository in dir, with the given number of commits and a few
// more, and returns the counts that a walk must find. The history is the same each
// time. It has files in nested directories, some of which change far more often than
// others, files that are deleted and come back, become executable or links, branches
// that are merged, a submodule, and names with spaces and non-ASCII letters.
func Make(ctx context.Context, dir string, commits int) (churn.Report, error) {
	if err := git(ctx, nil, "init", "-q", "--bare", dir); err != nil {
		return churn.Report{}, err
	}
	if err := git(ctx, nil, "-C", dir, "symbolic-ref", "HEAD", "refs/heads/main"); err != nil {
		return churn.Report{}, err
	}
	r, w := io.Pipe()
	h := history{
		out:   bufio.NewWriter(w),
		rand:  rand.New(rand.NewPCG(1, 2)),
		lines: make(map[string][]string),
		seen:  make(map[string]*churn.File),
	}
	go func() {
		h.write(commits)
		w.CloseWithError(h.out.Flush())
	}()
	// One pack, also for a short history.
	err := git(ctx, r, "-C", dir, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet")
	r.Close()
	if err != nil {
		return churn.Report{}, err
	}
	return h.report(), nil
}

// git runs git without the configuration of the user and the system.
func git(ctx context.Context, stdin io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// A history writes commits to git fast-import.
type history struct {
	out   *bufio.Writer
	rand  *rand.Rand
	mark  int                 // of the last commit
	lines map[string][]string // the lines of the branch's files
	seen  map[string]*churn.File
}

// The unusual changes happen once in so many commits, each in another commit.
const (
	everyMerge      = 100
	everyDelete     = 25
	everyLink       = 90
	everyExecutable = 30
	everySubmodule  = 200
)

const files = 200 // number of files that change

func (h *history) write(commits int) {
	for n := range commits {
		parent := h.mark
		switch {
		case n%everyMerge == 7:
			h.merge(n)
		case n%everyDelete == 3 && n > 0:
			h.commit(parent)
			h.delete()
		case n%everyLink == 11:
			h.commit(parent)
			name := h.name()
			h.modify("120000", name, []string{"target of " + fmt.Sprint(n)}, "")
		case n%everyExecutable == 13:
			h.commit(parent)
			name := slices.Min(slices.Collect(maps.Keys(h.lines)))
			h.modify("100755", name, append(slices.Clip(h.lines[name]), "exit"), "\n")
		case n%everySubmodule == 17:
			h.commit(parent)
			fmt.Fprintf(h.out, "M 160000 %040x sub/module\n", n+1)
			h.change("sub/module", 0)
		default:
			h.commit(parent)
			for _, name := range h.names(1 + h.rand.IntN(4)) {
				h.edit(name)
			}
		}
	}
}

// commit begins a commit, which becomes the last one. Its changes must follow.
func (h *history) commit(parents ...int) {
	h.mark++
	message := fmt.Sprintf("Commit %d\n", h.mark)
	fmt.Fprintf(h.out, "commit refs/heads/main\nmark :%d\ncommitter A U Thor <author@example.com> %d +0000\ndata %d\n%s",
		h.mark, 1_600_000_000+60*h.mark, len(message), message)
	for i, p := range parents {
		switch {
		case p == 0: // no parent
		case i == 0:
			fmt.Fprintf(h.out, "from :%d\n", p)
		default:
			fmt.Fprintf(h.out, "merge :%d\n", p)
		}
	}
}

// merge writes a branch of one commit beside the main one, and merges it.
func (h *history) merge(n int) {
	base := h.mark
	branch := fmt.Sprintf("branches/%d.txt", n)
	h.commit(base)
	h.edit(branch)
	side := h.mark
	onBranch := h.lines[branch]
	delete(h.lines, branch)

	h.commit(base)
	h.edit(h.name())
	h.commit(h.mark, side)
	h.put("100644", branch, strings.Join(onBranch, "\n")+"\n")
	h.lines[branch] = onBranch
}

// name chooses a file.
func (h *history) name() string {
	f := h.rand.Float64()
	n := int(f * f * f * files)
	switch n % 10 {
	case 0:
		return fmt.Sprintf("file %d.txt", n)
	case 1:
		return fmt.Sprintf("größe/ä%d.txt", n)
	default:
		return fmt.Sprintf("src/%c/%c/file%d.go", 'a'+n%3, 'a'+n%5, n)
	}
}

// names chooses n files, or fewer.
func (h *history) names(n int) []string {
	var names []string
	for range n {
		names = append(names, h.name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// edit changes a file, or makes it if it does not exist.
func (h *history) edit(name string) {
	lines := slices.Clone(h.lines[name])
	if len(lines) == 0 {
		for i := range 10 + h.rand.IntN(60) {
			lines = append(lines, fmt.Sprintf("line %d of %s", i, name))
		}
	}
	lines[h.rand.IntN(len(lines))] = fmt.Sprintf("changed in commit %d", h.mark)
	switch h.rand.IntN(4) {
	case 0:
		lines = append(lines, fmt.Sprintf("added in commit %d", h.mark))
	case 1:
		lines = lines[:max(1, len(lines)-2)]
	}
	h.modify("100644", name, lines, "\n")
}

// modify writes a new version of a file.
func (h *history) modify(mode, name string, lines []string, end string) {
	text := strings.Join(lines, "\n") + end
	h.put(mode, name, text)
	h.lines[name] = lines
	h.change(name, strings.Count(text, "\n"))
}

func (h *history) put(mode, name, text string) {
	fmt.Fprintf(h.out, "M %s inline %s\ndata %d\n%s\n", mode, name, len(text), text)
}

// delete deletes a file.
func (h *history) delete() {
	names := slices.Sorted(maps.Keys(h.lines))
	name := names[h.rand.IntN(len(names))]
	delete(h.lines, name)
	fmt.Fprintf(h.out, "D %s\n", name)
	h.change(name, 0)
}

// change records that the commit has changed a file, and its number of lines.
func (h *history) change(name string, lines int) {
	f := h.seen[name]
	if f == nil {
		f = &churn.File{Path: name}
		h.seen[name] = f
	}
	f.Changes++
	f.Lines = max(f.Lines, lines)
}

// report returns the expected counts.
func (h *history) report() churn.Report {
	return churn.NewReport(h.mark, maps.Values(h.seen))
}
