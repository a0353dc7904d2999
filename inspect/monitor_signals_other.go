//go:build js || plan9

package inspect

import "os"

var terminalSignals = []os.Signal{os.Interrupt}
