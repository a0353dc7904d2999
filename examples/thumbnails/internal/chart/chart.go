// Package chart draws memory over time.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Point is one sample of a process.
type Point struct {
	At    time.Duration // since the process began its work
	Bytes int64         // of resident memory
}

// A Curve is the memory of one process.
type Curve struct {
	Name   string
	Points []Point
}

// Curves is the largest number of curves in a chart.
const Curves = 4

// The styles of curves, in their order. The curves can be distinguished without
// colours, and the colours also by colour-blind readers (Okabe and Ito). Later curves
// are thinner, so that those below them can be seen.
var styles = [Curves]struct {
	color  color.RGBA
	width  vg.Length
	dashes []vg.Length
}{
	{color.RGBA{R: 213, G: 94, A: 255}, 3, nil},
	{color.RGBA{R: 0, G: 114, B: 178, A: 255}, 1.5, []vg.Length{6, 3}},
	{color.RGBA{G: 158, B: 115, A: 255}, 2, nil},
	{color.RGBA{R: 230, G: 159, A: 255}, 1.5, []vg.Length{2, 2}},
}

// ErrPoints is returned if a curve has fewer than two points.
var ErrPoints = errors.New("a curve needs two points")

// A Legend says where the names of the curves are.
type Legend bool

const (
	Top    Legend = true  // on the left
	Bottom Legend = false // on the right
)

// Draw writes an SVG image of one to Curves curves, each with all its points.
func Draw(w io.Writer, title string, legend Legend, curves []Curve) error {
	if len(curves) < 1 || len(curves) > Curves {
		return fmt.Errorf("%d curves; a chart has 1 to %d", len(curves), Curves)
	}
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = 8
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{}
	p.X.Label.Text = "time (s)"
	p.Y.Label.Text = "resident memory (MiB)"
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left = legend == Top, true
	p.Legend.Padding = 4
	p.Legend.XOffs, p.Legend.YOffs = 8, -8
	if legend == Bottom {
		p.Legend.XOffs, p.Legend.YOffs = 400, 8 // the library believes that names are shorter than they are
	}
	p.Legend.ThumbnailWidth = 36
	for _, style := range []*font.Font{
		&p.Title.TextStyle.Font, &p.Legend.TextStyle.Font,
		&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font,
	} {
		style.Variant, style.Size = "Sans", 12
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{215}
	p.Add(grid)
	for i, c := range curves {
		if len(c.Points) < 2 {
			return fmt.Errorf("%s: %w", c.Name, ErrPoints)
		}
		line, err := plotter.NewLine(points(c.Points))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		line.Color, line.Width, line.Dashes = styles[i].color, styles[i].width, styles[i].dashes
		p.Add(line)
		p.Legend.Add(c.Name, line)
	}
	p.Y.Max *= 1.05 // so that the highest point is below the frame
	image := vgsvg.New(800, 450)
	const margin = 10
	c := draw.New(image)
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
	p.Draw(draw.Crop(c, margin, -margin, margin, -margin))
	_, err := image.WriteTo(w)
	return err
}

// ticks marks an axis at multiples of a round number, each with its label. The
// library has fewer labels.
type ticks struct{}

func (ticks) Ticks(low, high float64) (marks []plot.Tick) {
	const most = 8
	least := (high - low) / most
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, round := range []float64{2, 5, 10} {
		if step < least {
			step = round * math.Pow(10, math.Floor(math.Log10(least)))
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		marks = append(marks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return marks
}

// points are in the units of the axes.
type points []Point

func (p points) Len() int { return len(p) }

func (p points) XY(i int) (x, y float64) {
	return p[i].At.Seconds(), float64(p[i].Bytes) / (1 << 20)
}
