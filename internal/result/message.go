package result

// A Message is what the laboratory tells `cheap bench`. One field is set, or Error and Usage.
type Message struct {
	Progress string `json:",omitempty"` // what is measured now
	Warning  string `json:",omitempty"`

	Report      *Report  `json:",omitempty"`
	List        []string `json:",omitempty"` // of -list
	Interrupted bool     `json:",omitempty"`
	Error       string   `json:",omitempty"`
	Usage       bool     `json:",omitempty"` // the error is a mistake in the arguments
}
