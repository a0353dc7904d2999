package result

import "testing"

func TestCPUNameIn(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\ncpu family\t: 6\nmodel\t\t: 154\nmodel name\t: 12th Gen Intel(R) Core(TM) i7-1260P\n": "12th Gen Intel(R) Core(TM) i7-1260P",
		"processor\t: 0\nBogoMIPS\t: 50\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n":   "Raspberry Pi 4 Model B Rev 1.4",
		"processor : 0\ncpu : POWER9, altivec supported\n":                                                     "POWER9, altivec supported",
		"processor\t: 0\nmodel name\t:\n":                                                                      "",
	} {
		if got := cpuNameIn(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
