// Package twiceuser closes what package twice has.
package twiceuser

import "twice"

func closedTwice(n *twice.Node) {
	defer n.Close()
	n.Close() // want `n is freed twice`
}

func closedSafely(s *twice.Safe, a *twice.Asking) {
	defer s.Close()
	defer a.Close()
	s.Close()
	a.Close()
}
