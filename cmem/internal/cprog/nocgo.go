//go:build !cgo || !linux

package main

func main() { panic("cprog needs cgo, and Linux") }
