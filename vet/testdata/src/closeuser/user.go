package closeuser

import "closeforgotten"

func forget() {
	m, err := closeforgotten.NewImage(nil) // want `m is dropped without Close`
	if err != nil {
		return
	}
	m.Show()
}

func remember() {
	m, err := closeforgotten.NewImage(nil)
	if err != nil {
		return
	}
	defer m.Close()
	m.Show()
}
