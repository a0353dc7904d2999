package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
)

// What SARIF 2.1.0 calls the parts of a report, as far as they are needed here.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver struct {
				Name           string      `json:"name"`
				InformationURI string      `json:"informationUri"`
				Rules          []sarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifRule struct {
		ID      string    `json:"id"`
		Short   sarifText `json:"shortDescription"`
		Full    sarifText `json:"fullDescription"`
		HelpURI string    `json:"helpUri"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine   int `json:"startLine"`
				StartColumn int `json:"startColumn"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// printSARIF writes the findings as SARIF. Files are named relative to the current directory. The
// id of a rule is analyzer/category.
func printSARIF(w io.Writer, analyzers []*analysis.Analyzer, graph *checker.Graph) error {
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: make([]sarifRun, 1)}
	run := &log.Runs[0]
	run.Results = []sarifResult{} // must be there
	run.Tool.Driver.Name = "cheapvet"
	run.Tool.Driver.InformationURI = "https://github.com/cheapgo/cheap"
	for _, a := range analyzers {
		summary, _, _ := strings.Cut(a.Doc, "\n")
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{a.Name, sarifText{summary}, sarifText{a.Doc}, a.URL})
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, act := range graph.Roots {
		for _, d := range act.Diagnostics {
			pos := act.Package.Fset.Position(d.Pos)
			if key := pos.String() + d.Message; seen[key] {
				continue
			} else {
				seen[key] = true
			}
			r := sarifResult{RuleID: act.Analyzer.Name, Level: "warning", Message: sarifText{d.Message}, Locations: make([]sarifLocation, 1)}
			if d.Category != "" {
				r.RuleID += "/" + d.Category
			}
			name := pos.Filename
			if rel, err := filepath.Rel(dir, name); err == nil {
				name = rel
			}
			at := &r.Locations[0].Physical
			at.Artifact.URI = filepath.ToSlash(name)
			at.Region.StartLine, at.Region.StartColumn = pos.Line, pos.Column
			run.Results = append(run.Results, r)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(log)
}
