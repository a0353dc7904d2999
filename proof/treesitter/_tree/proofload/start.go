package main

import (
	_ "github.com/cheapgo/cheap/libc/arenas"
	"github.com/cheapgo/cheap/pace"
)

func start() { check(pace.Start(pace.Options{})) }
