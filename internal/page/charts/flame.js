'use strict';

// flameGraph draws a flame graph in a box. A frame has its name, its depth, and from and to, on a scale of any
// unit. A click enlarges a frame, as does Enter while the box has the focus: the arrows go from frame to frame, and
// Escape shows the whole again. The options are functions of a frame:
//
//	fill    its color, [color, opacity]
//	parts   the colors of the line below it, [[color, share], …]
//	tip     the lines of its tooltip
//	zoomed  called with the frame that is enlarged, and whether that is the whole
//	at      called with the frame that the keys have come to
const flameGraph = (box, o) => {
	const row = 22; // pixels
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const font = '12px "Liberation Sans", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const ruler = document.createElement('canvas').getContext('2d');
	ruler.font = font;

	// fit shortens a name to a width.
	const fit = (name, width) => {
		if (width < 24) return '';
		if (ruler.measureText(name).width <= width) return name;
		let n = Math.floor(name.length * width / ruler.measureText(name).width);
		while (n > 1 && ruler.measureText(name.slice(0, n) + '…').width > width) n--;
		return n > 1 ? name.slice(0, n) + '…' : '';
	};
	const short = name => name.slice(name.lastIndexOf('/') + 1);

	const chart = echarts.init(box, null, {renderer: 'svg', height: row});
	let frames = [], depth = 1, shown = null, focus = null;

	const inside = (f, of) => f.from >= of.from - 1e-9 * whole() && f.to <= of.to + 1e-9 * whole();
	const whole = () => frames[0].to - frames[0].from || 1;

	const draw = () => {
		if (!shown) return;
		const card = css('--card'), words = css('--text'), line = css('--line');
		const span = shown.to - shown.from || 1;
		const visible = frames.filter(f => (inside(f, shown) && f.depth >= shown.depth || inside(shown, f) && f.depth < shown.depth) && f.to - f.from > span / 2000);
		chart.setOption({
			animation: false,
			grid: {left: 0, right: 0, top: 0, bottom: 0},
			xAxis: {type: 'value', min: shown.from, max: shown.to, show: false},
			yAxis: {type: 'value', min: 0, max: depth, inverse: true, show: false},
			tooltip: {
				confine: true, backgroundColor: card, borderColor: line, textStyle: {color: words, fontSize: 12},
				formatter: p => {
					const f = visible[p.dataIndex], div = document.createElement('div');
					const name = div.appendChild(document.createElement('b'));
					name.textContent = f.name;
					name.style.whiteSpace = 'normal';
					name.style.overflowWrap = 'anywhere';
					for (const text of o.tip(f)) div.append(document.createElement('br'), text);
					return div;
				},
			},
			series: [{
				type: 'custom', clip: true, encode: {x: [0, 1], y: 2},
				data: visible.map(f => [Math.max(f.from, shown.from), Math.min(f.to, shown.to), f.depth]),
				renderItem: (params, api) => {
					const f = visible[params.dataIndex];
					const [x, y] = api.coord([api.value(0), f.depth]);
					const [end] = api.coord([api.value(1), f.depth]);
					const w = Math.max(end - x - 1, 0.5), [fill, opacity] = o.fill(f);
					const children = [{
						type: 'rect', shape: {x, y: y + 1, width: w, height: row - 2, r: 2},
						style: {fill, opacity, stroke: f === focus ? words : null, lineWidth: f === focus ? 2 : 0},
					}];
					let at = x;
					for (const [color, share] of o.parts ? o.parts(f) : []) {
						const part = w * share;
						if (part > 0.5) children.push({type: 'rect', shape: {x: at, y: y + row - 5, width: part, height: 3}, style: {fill: color}});
						at += part;
					}
					const label = fit(short(f.name), w - 8);
					if (label) {
						children.push({type: 'text', style: {x: x + 4, y: y + row / 2 - 2, text: label, fill: words, font, textVerticalAlign: 'middle'}});
					}
					return {type: 'group', children};
				},
			}],
		}, true);
		chart.off('click');
		chart.on('click', p => zoom(visible[p.dataIndex]));
	};

	const zoom = f => {
		shown = f;
		o.zoomed(f, f === frames[0]);
		draw();
	};

	// show draws other frames, the whole first.
	const show = list => {
		frames = list;
		shown = focus = null;
		depth = list.reduce((most, f) => Math.max(most, f.depth + 1), 1);
		box.style.height = (depth * row + 4) + 'px';
		chart.resize({height: depth * row + 4});
		if (list.length > 0) zoom(list[0]);
		else chart.clear();
	};

	const children = f => frames.filter(c => c.depth === f.depth + 1 && inside(c, f));
	const parent = f => frames.find(c => c.depth === f.depth - 1 && inside(f, c)) || f;
	box.tabIndex = 0;
	box.addEventListener('keydown', e => {
		if (!shown) return;
		const f = focus || shown, beside = children(parent(f)), i = beside.indexOf(f);
		const to = {
			ArrowDown: () => children(f)[0], ArrowUp: () => parent(f),
			ArrowRight: () => beside[i + 1], ArrowLeft: () => beside[i - 1],
		}[e.key];
		if (to) {
			focus = to() || f;
			if (!inside(focus, shown)) shown = focus;
			o.at(focus);
			draw();
		} else if (e.key === 'Enter') {
			zoom(f);
		} else if (e.key === 'Escape') {
			focus = null;
			zoom(frames[0]);
		} else {
			return;
		}
		e.preventDefault();
	});
	window.addEventListener('resize', () => { chart.resize(); draw(); });
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
	return {show, draw, whole: () => zoom(frames[0])};
};
