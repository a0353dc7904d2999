package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sources are the files of Go that a profile names, as far as this machine has them.
type sources struct {
	files  map[string]*sourceFile
	places map[placeKey]*place
}

type placeKey struct {
	function, file string
	line           int64
	calls          string
	header         int64
}

func newSources() *sources {
	return &sources{map[string]*sourceFile{}, map[placeKey]*place{}}
}

// A sourceFile is a parsed file.
type sourceFile struct {
	set  *token.FileSet
	file *ast.File
}

// largestSource bounds what is read for one name in a profile, which anybody may have written.
const largestSource = 16 << 20

// of returns a file, nil if it is not here or is no Go.
func (s *sources) of(name string) *sourceFile {
	if f, found := s.files[name]; found {
		return f
	}
	s.files[name] = nil
	if !strings.HasSuffix(name, ".go") || !filepath.IsAbs(name) {
		return nil
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > largestSource {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	s.files[name] = &sourceFile{set, file}
	return s.files[name]
}

// How often a call is made in one round of a loop, as the source says.
const (
	onceARound    = "once a round"
	atMostOnce    = "at most once a round" // a condition decides
	severalARound = "several times a round"
	unknownRounds = "" // without source
)

// A place is where a frame is in the source: the nodes around its line, the outermost first, from
// the body of its function or function literal on.
type place struct {
	set   *token.FileSet
	body  *ast.BlockStmt
	nodes []ast.Node // from the body to the innermost node on the line

	// ranged is the loop over a function whose body the frame is, nil for other frames.
	ranged *ast.RangeStmt
}

// place looks for a frame, of which calls is the function that it calls. It is nil if the source is not
// here, or is another one than what was built. The frame of a body of a loop over a function has the
// line of the loop, others have 0.
func (s *sources) place(f frame, calls string, header int64) *place {
	key := placeKey{f.function, f.file, f.line, calls, header}
	p, found := s.places[key]
	if !found {
		p = s.find(f, calls)
		if p != nil && header > 0 {
			for _, n := range p.nodes {
				if of, ok := n.(*ast.RangeStmt); ok && int64(p.set.PositionFor(of.Pos(), false).Line) == header {
					p.ranged = of
				}
			}
		}
		s.places[key] = p
	}
	return p
}

func (s *sources) find(f frame, calls string) *place {
	file := s.of(f.file)
	if file == nil {
		return nil
	}
	line := int(f.line)
	covers := func(n ast.Node) bool {
		return file.set.PositionFor(n.Pos(), false).Line <= line && line <= file.set.PositionFor(n.End(), false).Line
	}
	for _, d := range file.file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil || !covers(decl) || !isFunction(f.function, decl) {
			continue
		}
		p := &place{set: file.set, body: decl.Body}
		var best []ast.Node
		called := false
		ast.PreorderStack(decl.Body, nil, func(n ast.Node, stack []ast.Node) bool {
			if !covers(n) {
				return false
			}
			if _, ok := n.(*ast.FuncLit); ok && !isClosure.MatchString(f.function) {
				return false // the frame is not in a literal
			}
			// Of what is on the line, the call of the next frame is the place, else the innermost statement.
			call, ok := n.(*ast.CallExpr)
			switch {
			case ok && calls != "" && nameOfCall(call) == calls:
				// What is in both parts of for ok := f(); ok; ok = f() is in the rounds.
				if !called || isInInit(best) {
					called = true
					best = append(append([]ast.Node(nil), stack...), n)
				}
			case !called && isStatement(n, stack) && len(stack) >= len(best):
				best = append(append([]ast.Node(nil), stack...), n)
			}
			return true
		})
		p.nodes = best
		for i := len(best) - 1; i >= 0; i-- {
			if literal, ok := best[i].(*ast.FuncLit); ok {
				p.body, p.nodes = literal.Body, best[i+1:]
				break
			}
		}
		return p
	}
	return nil
}

// isStatement reports whether a node is a statement of its own, and no part of the head of a loop.
func isStatement(n ast.Node, stack []ast.Node) bool {
	if len(stack) > 0 {
		if loop, ok := stack[len(stack)-1].(*ast.ForStmt); ok && n != loop.Body {
			return false
		}
	}
	if _, ok := n.(*ast.BlockStmt); ok {
		return false // a line with its brace has what the block is of
	}
	_, ok := n.(ast.Stmt)
	return ok
}

// isInInit reports whether the innermost of some nodes is in the first part of a for statement.
func isInInit(nodes []ast.Node) bool {
	for i, n := range nodes[:max(len(nodes)-1, 0)] {
		if loop, ok := n.(*ast.ForStmt); ok && loop.Init != nil && nodes[i+1] == loop.Init {
			return true
		}
	}
	return false
}

// nameOfCall is the name of the function or method that a call calls, without its package or receiver.
func nameOfCall(call *ast.CallExpr) string {
	fun := ast.Unparen(call.Fun)
	switch of := fun.(type) {
	case *ast.IndexExpr:
		fun = of.X
	case *ast.IndexListExpr:
		fun = of.X
	}
	switch of := fun.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}

// inLiteral matches what the compiler adds to the name of a function for its literals and for the
// bodies of loops over functions.
var inLiteral = regexp.MustCompile(`(\.func\d+|\.gowrap\d+|\.deferwrap\d+|-range\d+|\.\d+)`)

// declared returns the lines that declare the variables whose addresses a frame passes to a function.
func (s *sources) declared(f frame, calls string) (lines []int64) {
	p := s.place(f, calls, 0)
	if p == nil || len(p.nodes) == 0 {
		return nil
	}
	call, ok := p.nodes[len(p.nodes)-1].(*ast.CallExpr)
	if !ok {
		return nil
	}
	passed := map[string]bool{}
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if of, ok := n.(*ast.UnaryExpr); ok && of.Op == token.AND {
				if name, ok := ast.Unparen(of.X).(*ast.Ident); ok {
					passed[name.Name] = true
				}
			}
			return true
		})
	}
	line := func(name *ast.Ident) {
		if at := int64(p.set.PositionFor(name.Pos(), false).Line); passed[name.Name] && name.Pos() < call.Pos() && !slices.Contains(lines, at) {
			lines = append(lines, at)
		}
	}
	ast.Inspect(p.body, func(n ast.Node) bool {
		switch of := n.(type) {
		case *ast.ValueSpec:
			for _, name := range of.Names {
				line(name)
			}
		case *ast.AssignStmt:
			for _, to := range of.Lhs {
				if name, ok := to.(*ast.Ident); ok && of.Tok == token.DEFINE {
					line(name)
				}
			}
		}
		return true
	})
	return lines
}

// isFunction reports whether the function of a frame is a declaration, or a literal in it.
func isFunction(function string, decl *ast.FuncDecl) bool {
	function = function[strings.LastIndexByte(function, '/')+1:]
	for part := range strings.SplitSeq(inLiteral.ReplaceAllString(function, ""), ".") {
		if part == decl.Name.Name {
			return true
		}
	}
	return false
}

// loops returns the loops around a place, the innermost first.
func (p *place) loops() (around []ast.Stmt) {
	for i := len(p.nodes) - 1; i >= 0; i-- {
		switch of := p.nodes[i].(type) {
		case *ast.ForStmt:
			if i+1 == len(p.nodes) || p.nodes[i+1] != of.Init {
				around = append(around, of)
			}
		case *ast.RangeStmt:
			if i+1 == len(p.nodes) || p.nodes[i+1] != of.X {
				around = append(around, of)
			}
		}
	}
	return around
}

// rounds says how often the place is reached in one round of a loop around it, or in one call of its
// function if the loop is nil. The body of a loop over a function is a function.
func (p *place) rounds(loop ast.Stmt) string {
	if loop == nil && p.ranged != nil {
		loop = p.ranged
	}
	count := onceARound
	body := p.body
	for i := len(p.nodes) - 1; i >= 0 && p.nodes[i] != loop; i-- {
		inner := ast.Node(nil)
		if i+1 < len(p.nodes) {
			inner = p.nodes[i+1]
		}
		switch of := p.nodes[i].(type) {
		case *ast.ForStmt:
			if inner != of.Init {
				return severalARound
			}
		case *ast.RangeStmt:
			if inner != of.X {
				return severalARound
			}
		case *ast.IfStmt:
			if inner != nil && (inner == of.Body || inner == of.Else) {
				count = atMostOnce
			}
		case *ast.CaseClause, *ast.CommClause:
			count = atMostOnce
		case *ast.BinaryExpr:
			if (of.Op == token.LAND || of.Op == token.LOR) && inner == of.Y {
				count = atMostOnce
			}
		}
	}
	var in ast.Node = body
	switch of := loop.(type) {
	case *ast.ForStmt:
		in = of.Body
	case *ast.RangeStmt:
		in = of.Body
	}
	if len(p.nodes) > 0 && leavesBefore(in, p.nodes[len(p.nodes)-1], loop != nil) {
		count = atMostOnce
	}
	return count
}

// leavesBefore reports whether a round may end before it comes to a node: by continue in a loop, by
// return in a function. A break or a return in a loop ends the last round only.
func leavesBefore(in, n ast.Node, loop bool) (leaves bool) {
	ast.Inspect(in, func(m ast.Node) bool {
		switch of := m.(type) {
		case nil:
			return false
		case *ast.FuncLit:
			return false
		case *ast.ForStmt, *ast.RangeStmt:
			if loop && (of.Pos() > n.Pos() || of.End() < n.End()) {
				return false // its continue is of another loop
			}
		case *ast.BranchStmt:
			leaves = leaves || loop && of.Tok == token.CONTINUE && of.Pos() < n.Pos()
		case *ast.ReturnStmt:
			leaves = leaves || !loop && of.End() < n.Pos()
		}
		return true
	})
	return leaves
}
