package source

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Declaration is what a header, or the text above import "C", says of a function of C.
type Declaration struct {
	Result string
	Params []string

	about   string // the sentences of its comment about the result
	given   string // the others
	pointer bool   // the result is a pointer, and not to something constant
}

var (
	include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">]+)[">]`)
	flag    = regexp.MustCompile(`(?m)^[ \t]*#cgo .*?FLAGS:.*`)
	folder  = regexp.MustCompile(`-I[ \t]*(\S+)`)
)

// maxText is the size of what is read of headers.
const maxText = 16 << 20

// Headers returns the texts above import "C", and what is included there: in the folder of the package, in those of -I in #cgo
// lines, and in those of the system, which are followed that deep. It follows no condition and no macro.
func (p *Package) Headers(depth int) string {
	var preambles strings.Builder
	var dirs []string
	for _, f := range p.Files {
		text := Preamble(f)
		preambles.WriteString(text + "\n")
		dir := filepath.Dir(p.Fset.File(f.FileStart).Name())
		if text != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, line := range flag.FindAllString(preambles.String(), -1) {
		for _, m := range folder.FindAllStringSubmatch(line, -1) {
			dir := strings.ReplaceAll(m[1], "${SRCDIR}", dirs[0])
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(dirs[0], dir)
			}
			dirs = append(dirs, dir)
		}
	}
	multiarch, _ := filepath.Glob("/usr/include/*-linux-gnu")
	h := headers{seen: map[string]bool{}, system: append([]string{"/usr/local/include", "/usr/include"}, multiarch...)}
	h.read(preambles.String(), dirs, depth)
	return h.String()
}

type headers struct {
	strings.Builder
	seen   map[string]bool
	system []string
}

// read adds a text and what it includes.
func (h *headers) read(text string, dirs []string, depth int) {
	h.WriteString(text + "\n;\n")
	for _, m := range include.FindAllStringSubmatch(text, -1) {
		for i, dir := range slices.Concat(dirs, h.system) {
			name, depth := filepath.Join(dir, m[2]), depth
			if i >= len(dirs) {
				depth--
			}
			if h.seen[name] || h.Len() > maxText || depth < 0 {
				break
			}
			if text, err := os.ReadFile(name); err == nil {
				h.seen[name] = true
				h.read(string(text), append([]string{filepath.Dir(name)}, dirs...), depth)
				break
			}
		}
	}
}

// Declared returns what headers say of a function, or nil.
func (p *Package) Declared(name string) *Declaration {
	p.declare.Do(func() {
		p.declared = map[string]*Declaration{}
		if p.Cgo {
			p.readDeclarations(p.Headers(1))
		}
	})
	return p.declared[name]
}

var (
	called    = regexp.MustCompile(`\b([A-Za-z_]\w*)\s*\(`)
	notResult = regexp.MustCompile(`[=,(!&|?]|\b(return|if|else|while|for|switch|case|do|goto|sizeof|typedef|define)\b`)
	directive = regexp.MustCompile(`(?m)^[ \t]*#(?:\\\r?\n|[^\n])*`)
	paramName = regexp.MustCompile(`(\w+)\s*(\[[^\]]*\])?\s*$`)
	constant  = regexp.MustCompile(`\bg?const(pointer)?\b`)
)

func (p *Package) readDeclarations(text string) {
	code := Blank(text)
	for _, m := range called.FindAllStringSubmatchIndex(code, -1) {
		name := code[m[2]:m[3]]
		if !p.cnames[name] || p.declared[name] != nil {
			continue
		}
		from := strings.LastIndexAny(code[:m[0]], ";{}") + 1
		from += len(code[from:m[0]]) - len(strings.TrimLeft(code[from:m[0]], " \t\r\n"))
		result := strings.Join(strings.Fields(code[from:m[0]]), " ")
		params, n := Parameters(code[m[1]:])
		end := m[1] + n
		after := strings.TrimLeft(code[end:min(end+200, len(code))], " \t\r\n)")
		if result == "" || notResult.MatchString(result) || !strings.ContainsAny(after, ";{") {
			continue
		}
		d := &Declaration{Result: result, Params: params, pointer: strings.Contains(result, "*") && !constant.MatchString(result)}
		d.comment(commentOf(text, code, from, end))
		p.declared[name] = d
	}
}

// Blank returns a text of C with spaces for comments and strings, and with a semicolon and spaces for directives.
func Blank(text string) string {
	b := []byte(text)
	past := func(end string, from int) int {
		if n := strings.Index(text[from:], end); n >= 0 {
			return from + n + len(end)
		}
		return len(text)
	}
	spaces := func(b []byte) {
		for i, c := range b {
			if c != '\n' {
				b[i] = ' '
			}
		}
	}
	for i := 0; i < len(b); i++ {
		to := i + 1
		switch {
		case strings.HasPrefix(text[i:], "/*"):
			to = past("*/", i+2)
		case strings.HasPrefix(text[i:], "//"):
			to = past("\n", i)
		case b[i] == '"':
			for to < len(b) && b[to] != '"' && b[to] != '\n' {
				if b[to] == '\\' {
					to++
				}
				to++
			}
			to = min(to+1, len(b))
		default:
			continue
		}
		spaces(b[i:to])
		i = to - 1
	}
	for _, m := range directive.FindAllIndex(b, -1) {
		spaces(b[m[0]:m[1]])
		b[m[0]] = ';'
	}
	return string(b)
}

// Parameters splits a text that begins behind a parenthesis, up to the one that closes it, and says where what is behind that begins.
func Parameters(text string) (list []string, end int) {
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ',' && depth == 0, r == ')' && depth == 0:
			list = append(list, strings.Join(strings.Fields(text[from:i]), " "))
			if from = i + 1; r == ')' {
				return list, from
			}
		case r == ')':
			depth--
		}
	}
	return nil, len(text)
}

// commentOf returns the comment in front of a declaration, without an empty line between them, and the one behind it in its line.
func commentOf(text, code string, from, end int) string {
	start := len(strings.TrimRight(code[:from], " \t\r\n"))
	if start > 0 { // what stands behind another declaration in its line belongs to that
		if n := strings.IndexByte(text[start:from], '\n'); n >= 0 {
			start += n
		} else {
			start = from
		}
	}
	before := strings.TrimRight(text[start:from], " \t\r")
	if trimmed := strings.TrimRight(before, "\n"); len(before)-len(trimmed) > 1 {
		before = ""
	}
	if i := strings.LastIndex(before, "\n\n"); i >= 0 && strings.LastIndex(before, "/*") < i {
		before = before[i:]
	} else if i := strings.LastIndex(before, "/*"); i >= 0 {
		before = before[i:]
	}
	behind, _, _ := strings.Cut(text[end:], "\n")
	_, behind, _ = strings.Cut(behind, ";")
	return before + "\n. " + behind
}

var (
	decoration = regexp.MustCompile(`(?m)/\*+[!<]*|\*+/|//[/!<]*|^\s*\*+`)
	sentence   = regexp.MustCompile(`[.;!]\s|\n\s*\n|[@\\](param|return|returns|brief|note)\b`)
	ofResult   = regexp.MustCompile(`(?i)\b(returned|returns?|result|callers?|users?|you|application)\b`)
	mayNot     = regexp.MustCompile(`(?i)(not|n't|never|no need|without)[\w ]{0,30}\b(freed?|release|delete|dealloc|destroy|modif)|belongs? to|borrow|owned by|internal|static|(is|remains?|stays?) valid|valid (until|as long)`)
	mustFree   = regexp.MustCompile(`(?i)(callers?|users?|you|application|must|should|has|have|needs?|responsib\w+) [\w' ]{0,40}\b(free|frees|freed|freeing|free\(\w*\)|g_free|free'?d)\b`)
	takes      = regexp.MustCompile(`(?i)(takes?|taking|assumes?|transfers?|gets|gains|acquires?|has) (over )?(the )?(full )?ownership|ownership [\w ]{0,25}(transferred|taken|passed|moved|given)|\bowns\b|becomes? (the )?own|\b(adopt|steal|consume)s? (the|its?|this|that|\W)|transfer full|(will|is) (then )?(be )?(freed|released|deleted|free) (it|by|when|with|on|at|auto|along|together)|takes (\w+ )?over`)
	keeps      = regexp.MustCompile(`(?i)\b(store|save|hold)s? (\w+ )?(the |a |on to |this |that )*(pointer|reference|address)\b|\b(keep|retain|remember)s? (\w+ )?(the |a |on to |this |that )*(pointer|reference|address|buffer|buf|handle|string|it)\b|(not|n't|never|without|no) (be |been )?(cop(y|ied|ying)|duplicat)|must (remain|stay|outlive|live|be kept|persist|not be freed|not go out)|(remains?|stays?|kept|be) (valid|alive|available|in scope) (until|as long|while|for|during the life)`)
	notOwner   = regexp.MustCompile(`(?i)(not|n't|never|without|no) [\w ]{0,12}ownership`)
	goesOn     = regexp.MustCompile(`(?i)^\W*(this|the) value `)
	copies     = regexp.MustCompile(`(?i)\b(is|are|be|was|been|gets|internally) (\w+ )?(copied|duplicated)|\b(copies|duplicates)\b|(makes?|takes?|stores?|keeps?|holds?|has) (\w+ )?(a|its own|an internal|internal) (\w+ )?cop(y|ies)|can (safely )?(be )?free`)
	copiesNot  = regexp.MustCompile(`(?i)(not|n't|never|without|no) [\w ]{0,12}cop(y|ied|ies|ying)`)
)

// comment takes from a comment what it says about the result and about the parameters.
func (d *Declaration) comment(text string) {
	text = strings.ReplaceAll(decoration.ReplaceAllString(text, " "), "\r", "")
	ofThat := false // the sentence before was about the result
	for at := 0; at < len(text); {
		end := len(text)
		if m := sentence.FindStringIndex(text[min(at+1, len(text)):]); m != nil {
			end = at + 1 + m[0] + 1
		}
		s := strings.Join(strings.Fields(text[at:end]), " ")
		if ofThat = ofResult.MatchString(s) || ofThat && goesOn.MatchString(s); ofThat {
			d.about += s + "\n"
		} else {
			d.given += s + "\n"
		}
		at = end
	}
}

// Borrowed reports whether the result belongs to something else: it is constant, or the comment says so.
func (d *Declaration) Borrowed() bool {
	return d != nil && strings.Contains(d.Result, "*") && !d.pointer || d.Lent()
}

// MayPoint reports whether the result may be a pointer, as far as is known.
func (d *Declaration) MayPoint() bool {
	return d == nil || strings.Contains(d.Result, "*") || !length.MatchString(d.Result)
}

// Lent reports whether the comment says that the result belongs to something else.
func (d *Declaration) Lent() bool {
	return d != nil && strings.Contains(d.Result, "*") && mayNot.MatchString(d.about+d.given) && !mustFree.MatchString(d.about)
}

var freedBy = regexp.MustCompile(`(?i)\b(?:free|freed|frees|release|released|call|invoke|use|using|with|by)\W+(?:[a-z]+\W+)?(\w+_free)\b|\b(?:freed?|released?|back|deallocated?) (?:with|by|using|through|to) (\w+_(?:release|destroy))\b`)

// FreedBy returns the function, other than free, by which the comment wants what the function makes freed, or "".
func (d *Declaration) FreedBy() string {
	if d != nil {
		if m := freedBy.FindStringSubmatch(d.about); m != nil && m[1] != "g_free" {
			return m[1] + m[2]
		}
	}
	return ""
}

// Made reports whether the comment says that the caller has to free the result.
func (d *Declaration) Made() bool {
	return d != nil && d.pointer && mustFree.MatchString(d.about) && !mayNot.MatchString(d.about)
}

// MadeAt returns the only parameter by which the function gives the caller a pointer that has to be freed, as the comment says, or -1.
func (d *Declaration) MadeAt() int {
	if d == nil || d.pointer || !mustFree.MatchString(d.about) || mayNot.MatchString(d.about) {
		return -1
	}
	index := -1
	for i, p := range d.Params {
		if strings.Count(p, "*") == 2 && !constant.MatchString(p) {
			if index >= 0 {
				return -1
			}
			index = i
		}
	}
	return index
}

var underFlag = regexp.MustCompile(`\b[Ii]f [A-Z][A-Z0-9]*_[A-Z0-9_]+\b`)

// TakesAlways is the same as Takes if the comment does not speak of a flag.
func (d *Declaration) TakesAlways(index int) bool {
	return d.Takes(index) && !underFlag.MatchString(d.given)
}

// Takes and Keeps report whether the comment says that the function takes over the memory that a parameter points to, or keeps it.
func (d *Declaration) Takes(index int) bool { return d.says(takes, index) }

// Keeps is the same as Takes for memory that the caller still has to free.
func (d *Declaration) Keeps(index int) bool {
	return d.says(keeps, index) && !(copies.MatchString(d.given+d.about) && !copiesNot.MatchString(d.given+d.about))
}

var (
	untyped = regexp.MustCompile(`^void ?\*\s*\w*$`)
	length  = regexp.MustCompile(`^[\w ]*\b(int|long|short|unsigned|ssize_t|size_t|u?int\d+_t)\b[^*]*$`)
)

// opaque reports whether the function gets nothing but a pointer without a type and a length for what it is given before, and returns
// nothing: that is what callbacks are given later.
func (d *Declaration) opaque(index int) bool {
	return index > 0 && d.Untyped(index) && strings.HasSuffix(d.Result, "void") && !slices.ContainsFunc(d.Params, length.MatchString)
}

// Untyped reports whether a parameter is a pointer without a type, and no length follows.
func (d *Declaration) Untyped(index int) bool {
	return d != nil && index < len(d.Params) && untyped.MatchString(d.Params[index]) && !(index+1 < len(d.Params) && length.MatchString(d.Params[index+1]))
}

// KeepsNamed is the same as Keeps if it is plain which parameter is meant: the comment names it, or it is the only pointer but for the
// first parameter.
func (d *Declaration) KeepsNamed(index int) bool {
	if !d.Keeps(index) {
		return false
	}
	pointers := 0
	for i, p := range d.Params {
		if i == index && names(d.given, p) {
			return true
		}
		if i > 0 && strings.ContainsAny(p, "*[") {
			pointers++
		}
	}
	return pointers == 1
}

// names reports whether a text has the name of a parameter.
func names(text, param string) bool {
	m := paramName.FindStringSubmatch(param)
	return m != nil && regexp.MustCompile(`\b`+m[1]+`\b`).MatchString(text)
}

// says reports whether a sentence says something of a parameter. One that names another parameter does not, nor one about the result or
// the caller that does not name it.
func (d *Declaration) says(what *regexp.Regexp, index int) bool {
	if d == nil || index >= len(d.Params) || !strings.ContainsAny(d.Params[index], "*[") && !regexp.MustCompile(`_t\b|\bg(const)?pointer\b`).MatchString(d.Params[index]) {
		return false
	}
	for s := range strings.Lines(d.given + d.about) {
		if !what.MatchString(s) || notOwner.MatchString(s) {
			continue
		}
		named, other := false, false
		for i, p := range d.Params {
			if names(s, p) {
				named, other = named || i == index, other || i != index
			}
		}
		if given := strings.Contains(d.given, s); given && (named || !other) || named && strings.Contains(s, "ownership") {
			return true
		}
	}
	return false
}
