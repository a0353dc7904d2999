package inspect

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

// metricsPage is docs/reference/metrics.md, made of the tables.
func metricsPage() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Metrics

These are the numbers that inspect.ReadMetrics returns, that the page, expvar and the exporters show, and that `+"`cheap top`"+` prints. This page is made from the table in [inspect/metrics_list.go](../../inspect/metrics_list.go); a test keeps them equal.

A label named number tells heaps, accounts or pools of one name from each other: they are numbered in the order in which they were made. A counter begins at 0 with what it counts. Without labels there is one value.

A read does not stop the world, does not collect, and waits for no lock that may be held for long. The counts of a heap or a pool that is busy at that moment are those of the read before.
`)
	for _, t := range tableSpecs {
		fmt.Fprintf(&b, "\n## %s\n\n%s", t.title, t.about)
		if len(t.labels) > 0 {
			fmt.Fprintf(&b, " Labels: %s.", strings.Join(t.labels, ", "))
		}
		fmt.Fprintf(&b, "\n\n| metric | kind | unit | |\n| --- | --- | --- | --- |\n")
		for _, c := range t.columns {
			if c.Name == "" {
				continue // for tables only
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Kind, c.Unit, c.Help)
		}
	}
	return b.String()
}

func TestDocumentation(t *testing.T) {
	const file = "../docs/reference/metrics.md"
	want := metricsPage()
	if *update {
		testcall.Must(t, os.WriteFile(file, []byte(want), 0o666))
	}
	got, err := os.ReadFile(file)
	testcall.Must(t, err)
	if string(got) != want {
		t.Errorf("%s is not what the tables say; run go test -run=TestDocumentation -update in inspect", file)
	}
}

// TestNames holds the names to the rules of Prometheus.
func TestNames(t *testing.T) {
	valid := regexp.MustCompile(`^cheap(_[a-z]+)+$`)
	seen := map[string]bool{}
	for _, m := range Metrics() {
		base, total := strings.CutSuffix(m.Name, "_total")
		switch {
		case !valid.MatchString(m.Name) || seen[m.Name]:
			t.Errorf("%s is not a name, or there twice", m.Name)
		case total != (m.Kind == Counter):
			t.Errorf("%s is a %s", m.Name, m.Kind)
		case (m.Unit == "bytes" || m.Unit == "seconds") && !strings.HasSuffix(base, "_"+m.Unit):
			t.Errorf("%s does not end in its unit, %s", m.Name, m.Unit)
		case m.Help == "" || strings.Contains(m.Help, "\n") || !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: %q is no description of one line", m.Name, m.Help)
		}
		seen[m.Name] = true
	}
}
