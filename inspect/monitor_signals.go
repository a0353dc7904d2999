//go:build !js && !plan9

package inspect

import (
	"os"
	"syscall"
)

// terminalSignals reach all processes of a terminal's group.
var terminalSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
