package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
)

// TestMain makes the test's program its own child, as lab is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		if err := Child(context.Background(), append(leaking(), keeping(), peaking(""), Table{Table: result.Table{Name: "remote"}, Rows: []Row{served()}}), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], append([]string{"child"}, args...)...)
}
