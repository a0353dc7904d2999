// Package browser looks at the pages of the commands and of package inspect in Chromium, as their
// readers do. It has tests only, with the build tag browser.
//
//	go test -tags=browser ./browser
//
// A page of `cheap explain` is what the command writes, as it is built here.
package browser
