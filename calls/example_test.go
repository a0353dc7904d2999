//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// The methods Add, Length and Next are written by callgen for C functions.
func Example() {
	c := ctest.Calls{List: calls.Get()}
	defer c.List.Put()

	n := c.Length(c.List.String("seventeen letters"))
	sum := c.AddArgs(n.Arg(), calls.Int(25)) // an earlier result is an argument
	c.List.StopIf(calls.Negative(sum))
	if err := c.List.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n.Int(), sum.Int())
	// Output: 17 42
}

// A condition stops the list, and the error says at which call.
func ExampleList_StopIf() {
	c := ctest.Calls{List: calls.New()}
	open := c.Fail(2)
	c.List.StopIf(calls.Negative(open))
	c.Add(1, 2) // not made

	err := c.List.Run(context.Background())
	var stop *calls.StopError
	fmt.Println(errors.As(err, &stop), stop.Call == open, stop.Value)
	// Output: true true -1
}

// Rows are read into arrays, by one cgo call for as many as fit.
func ExampleList_Repeat() {
	cursor := ctest.NewCursor(5)
	defer ctest.FreeCursor(cursor)

	c := ctest.Calls{List: calls.New()}
	rows := c.List.Repeat(3) // three rows in a run
	rows.While(calls.Equal(c.Next(cursor), 100))
	ids := rows.Ints(c.Integer(cursor))
	text := c.Text(cursor)
	names := rows.Bytes(text, c.Bytes(cursor), 1024)
	rows.End()

	for more := true; more; more = rows.More() {
		if err := c.List.Run(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		for i, id := range ids.Values() {
			fmt.Printf("%d is %s\n", id, names.At(i))
		}
		fmt.Println("end of the run")
	}
	// Output:
	// 1 is b
	// -2 is cc
	// 3 is ddd
	// end of the run
	// -4 is eeee
	// 5 is fffff
	// end of the run
}
