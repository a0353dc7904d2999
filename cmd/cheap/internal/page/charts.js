// Draws the charts of the page from the figures in it. The colors are those of the
// style, so that only the style knows light and dark.
'use strict';

(() => {
	const charts = JSON.parse(document.getElementById('charts').textContent) || [];
	const narrowBelow = 560; // pixels of a chart; names stand above their bars there
	const font = '"Liberation Sans", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const fontSize = 12;
	const shapes = ['circle', 'rect', 'triangle', 'diamond'];
	const colors = 10;

	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const shape = i => shapes[(i + Math.floor(i / colors)) % shapes.length];
	const color = i => css('--c' + i % colors);

	const theme = () => ({
		text: css('--text'), soft: css('--soft'), line: css('--line'), card: css('--card'),
		bar: css('--bar'), ours: css('--ours'), whisker: css('--whisker'),
	});

	const ruler = document.createElement('canvas').getContext('2d');
	const widthOf = (text, weight = 'normal') => {
		ruler.font = weight + ' ' + fontSize + 'px ' + font;
		return Math.ceil(ruler.measureText(text).width);
	};

	// tick writes a round number of nanoseconds, up to 10 µs as nanoseconds.
	const tick = ns => {
		const units = [[1e9, 1e9, 's'], [1e6, 1e6, 'ms'], [1e4, 1e3, 'µs']];
		const [, size, unit] = units.find(([from]) => ns >= from * 0.9999) || [0, 1, 'ns'];
		return ns === 0 ? '0' : +(ns / size).toPrecision(6) + ' ' + unit;
	};

	// size writes a round number of bytes.
	const size = bytes => {
		const units = [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
		const [unit, name] = units.find(([u]) => bytes >= u * 0.9999) || [1, 'B'];
		return bytes === 0 ? '0' : +(bytes / unit).toPrecision(4) + ' ' + name;
	};

	// times writes a multiple.
	const times = x => x === 0 ? '0' : +x.toPrecision(6) + '×';
	const written = {ns: tick, bytes: size, times};

	const figures = chart => chart.points.flatMap(p =>
		[p.ns, p.low, p.high, ...(p.published || []).map(m => m.ns)]).filter(ns => ns > 0);

	// ticksBetween returns the round numbers of a logarithmic scale: powers of ten,
	// and numbers between them if the powers are few. Both ends keep a margin, a part
	// of the scale, so that no label sticks out.
	const ticksBetween = (min, max, room, margin) => {
		const decades = Math.log10(max / min);
		const steps = decades * 3 <= room ? [1, 2, 5] : decades * 2 <= room ? [1, 3] : [1];
		const stride = Math.max(1, Math.ceil(decades / room));
		const ticks = [];
		for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
			if (e % stride !== 0) continue;
			for (const s of steps) {
				const v = +(s + 'e' + e);
				const place = Math.log10(v / min) / decades;
				if (place >= margin && place <= 1 - margin) ticks.push(v);
			}
		}
		return ticks;
	};

	// stepOf returns a round number that is at least as large: of bytes a power of two,
	// of anything else 1, 2 or 5 times a power of ten.
	const stepOf = (least, bytes) => {
		if (bytes) return 2 ** Math.ceil(Math.log2(least));
		const power = 10 ** Math.floor(Math.log10(least));
		return power * ([1, 2, 5].find(s => s * power >= least * 0.9999) || 10);
	};

	// timeAxis returns the axis of times. It begins at 0, so that a bar twice as long is
	// twice as much. A logarithmic scale, for dots and lines, begins below the smallest
	// figure.
	const timeAxis = (chart, t, room, margin) => {
		const axis = {
			type: 'value', min: 0, splitNumber: room,
			axisLine: {show: false}, axisTick: {show: false},
			axisLabel: {color: t.soft, fontFamily: font, fontSize, formatter: written[chart.unit], hideOverlap: true, alignMaxLabel: margin > 0.02 ? 'right' : null},
			splitLine: {lineStyle: {color: t.line}},
		};
		const all = figures(chart);
		if (!chart.log || all.length === 0) {
			const max = Math.max(...all, 1e-9);
			axis.interval = stepOf(max / room, chart.unit === 'bytes');
			axis.max = +(axis.interval * Math.ceil(max / axis.interval)).toPrecision(12);
			return axis;
		}
		const min = Math.min(...all) / 1.6, max = Math.max(...all) * 1.15;
		const ticks = ticksBetween(min, max, room, margin);
		return Object.assign(axis, {
			type: 'log', min, max, startValue: min,
			axisTick: {show: false, customValues: ticks},
			axisLabel: Object.assign(axis.axisLabel, {customValues: ticks, alignMaxLabel: null}),
		});
	};

	// drawable is a time as it is drawn: 0 has no place on a logarithmic scale.
	const drawable = (ns, axis) => Math.max(ns, axis.min);

	// whiskers draws the confidence intervals of points. The offset moves them down to
	// the bar.
	const whiskers = (points, offset, stroke) => ({
		type: 'custom', name: 'intervals', silent: true, z: 4, clip: true,
		data: points.filter(p => p.low > 0 && p.high > 0).map(p => [p.low, p.x, p.high]),
		encode: {x: [0, 2], y: 1},
		renderItem: (params, api) => {
			const cap = 3;
			const [a, b] = [0, 2].map(i => api.coord([api.value(i), api.value(1)]));
			const style = {stroke, lineWidth: 1.25, fill: null};
			const segment = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1: y1 + offset, x2, y2: y2 + offset}, style});
			const ends = [a, b].map(p => segment(p[0], p[1] - cap, p[0], p[1] + cap));
			return {type: 'group', children: [segment(...a, ...b), ...ends]};
		},
	});

	// tip is the text beside the pointer. It is made of nodes, because names are not
	// HTML.
	const tip = chart => params => {
		const p = params.data && params.data.point;
		if (!p) return '';
		const box = document.createElement('div');
		box.className = 'tip';
		const add = (tag, text) => box.appendChild(document.createElement(tag)).textContent = text;
		add('b', p.name);
		add('span', 'measured here: ' + p.time + (p.interval ? ' (' + p.interval + ')' : ''));
		for (const m of p.published || []) add('span', chart.sources[m.source] + ': ' + m.time);
		return box;
	};

	const common = (chart, t) => ({
		animation: false,
		textStyle: {fontFamily: font, fontSize},
		legend: {show: false},
		tooltip: {
			trigger: 'item', confine: true, formatter: tip(chart),
			backgroundColor: t.card, borderColor: t.line, textStyle: {color: t.text, fontFamily: font},
		},
	});

	// The band of a bar, from above: its name where the chart is narrow, the bar, and
	// a lane for each published figure.
	const bandOf = (chart, narrow) => {
		const lanes = Math.max(0, ...chart.points.map(p => (p.published || []).length));
		const name = narrow ? 20 : 0, bar = 13, lane = 9;
		const height = name + bar + lanes * lane;
		return {
			height: height + 9, thickness: bar,
			name: name / 2 - height / 2,
			bar: name + bar / 2 - height / 2,
			lane: k => name + bar + (k + 0.5) * lane - height / 2,
			spaces: [name, lanes * lane],
		};
	};

	// bars draws a bar for each row, or a dot where the scale is logarithmic: the length
	// of a bar means nothing there.
	const bars = (chart, all, t, width) => {
		const points = chart.points;
		const names = points.map(p => p.name), times = points.map(p => p.time);
		const edge = chart.kind === 'dots' ? 8 : 4; // half a dot
		// The charts of a section are beside each other: they have the same margins.
		const widest = (of, weight) => Math.max(...all.flatMap(c => c.points.map(p => widthOf(p[of], weight)))) + 12;
		const right = widest('time', 'bold'), left = widest('name');
		const narrow = width < narrowBelow && left + right > width / 2;
		const band = bandOf(chart, narrow);
		// A long chart does not fit a screen: it has the labels of its axis at the top as well.
		const tall = points.length * band.height > 400;
		const room = Math.max(2, Math.min(8, Math.floor((width - (narrow ? 0 : left + right)) / 72)));
		const axis = timeAxis(chart, t, room, narrow ? 24 / width : 0.02);
		// A line of text that ends at the middle of the band has its own middle this far
		// above it.
		const above = offset => offset < 0 ? {verticalAlign: 'bottom', lineHeight: -2 * offset} : {verticalAlign: 'middle'};
		const side = (data, align, label) => ({
			type: 'category', data, inverse: true, position: align,
			axisLine: {show: false}, axisTick: {show: false}, splitLine: {show: false},
			axisLabel: Object.assign({
				interval: 0, fontFamily: font, fontSize, color: t.text,
			}, above(narrow ? band.name : band.bar), narrow ? {inside: true, margin: 0, align} : {}, label),
		});
		const space = height => ({type: 'bar', barWidth: height, barGap: 0, data: [], silent: true});
		const lanes = chart.sources || [];
		const marks = lanes.map((name, i) => ({
			type: 'scatter', name, symbol: shape(i), z: 5,
			itemStyle: {color: color(i), opacity: 1},
			symbolSize: 9, clip: false,
			data: points.flatMap(p => (p.published || []).flatMap((m, k) => m.source !== i ? [] : [{
				value: [drawable(m.ns, axis), p.x], symbolOffset: [0, band.lane(k)], point: p,
			}])),
		}));
		const spaces = band.spaces.map(h => h > 0 ? [space(h)] : []);
		return Object.assign(common(chart, t), {
			height: points.length * band.height + (tall ? 60 : 34),
			grid: {left: narrow ? edge : left, right: narrow ? edge : right, top: tall ? 30 : 4, bottom: 30, outerBoundsMode: 'none'},
			xAxis: tall ? [axis, Object.assign({}, axis, {position: 'top', splitLine: {show: false}})] : axis,
			yAxis: [
				side(names, 'left', narrow ? {width: width - right - 20, overflow: 'truncate'} : {}),
				side(times, 'right', {fontWeight: 'bold'}),
			],
			series: [
				...spaces[0],
				chart.kind === 'dots' ? {
					type: 'scatter', name: 'measured here', symbol: 'circle', symbolSize: 11, z: 6, clip: false,
					data: points.map(p => ({
						value: [drawable(p.ns, axis), p.x], point: p, symbolOffset: [0, band.bar],
						itemStyle: {color: p.ours ? t.ours : t.bar, opacity: 1},
					})),
				} : {
					type: 'bar', name: 'measured here', barWidth: band.thickness, barGap: 0, barMinHeight: 1,
					itemStyle: {borderRadius: [0, 3, 3, 0]},
					data: points.map(p => ({
						value: drawable(p.ns, axis), point: p, itemStyle: {color: p.ours ? t.ours : t.bar},
					})),
				},
				...spaces[1],
				whiskers(points, band.bar, t.whisker),
				...marks,
			],
		});
	};

	const svg = (tag, attributes, ...children) => {
		const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
		for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
		el.append(...children);
		return el;
	};

	// swatch is the picture of an entry of a legend, in the shapes of the chart.
	const swatch = (shape, fill) => {
		const outline = {
			circle: ['circle', {cx: 11, cy: 7, r: 4}],
			rect: ['rect', {x: 7, y: 3, width: 8, height: 8}],
			triangle: ['path', {d: 'M11 2.5 15.5 11h-9z'}],
			diamond: ['path', {d: 'M11 2l5 5-5 5-5-5z'}],
			dot: ['circle', {cx: 11, cy: 7, r: 5}],
			bar: ['rect', {x: 1, y: 2, width: 20, height: 10, rx: 2}],
		}[shape];
		const [tag, place] = outline;
		return svg('svg', {width: 22, height: 14, viewBox: '0 0 22 14', 'aria-hidden': 'true'}, svg(tag, Object.assign(place, {fill})));
	};

	// legend says what is what in the charts of a section. A button shows and hides what
	// it names.
	const legend = (all, t, box, hidden, toggle) => {
		const entry = (name, picture, canHide) => {
			const el = document.createElement(canHide ? 'button' : 'span');
			el.append(picture, name);
			if (canHide) {
				el.type = 'button';
				el.setAttribute('aria-pressed', String(!hidden.has(name)));
				el.onclick = () => toggle(name);
			}
			return el;
		};
		const [chart] = all;
		const first = box.closest('.part') === box.closest('section').querySelector('.part');
		if (!first && !chart.sources) return; // the part before it has the same
		const ours = all.some(c => c.points.some(p => p.ours));
		const mark = chart.kind === 'dots' ? 'dot' : 'bar';
		box.replaceChildren(entry('measured here' + (chart.unit === 'ns' ? ', with 95 % interval' : ''), swatch(mark, t.bar), false),
			...(ours ? [entry('the same, for this project', swatch(mark, t.ours), false)] : []),
			...(chart.sources || []).map((name, i) => entry(name, swatch(shape(i), color(i)), true)));
	};

	// start draws the charts of a section, and draws them anew when something changes.
	const start = all => {
		const key = document.querySelector('[data-legend="' + CSS.escape(all[0].legend) + '"]');
		const hidden = new Set();
		const drawings = all.map(chart => {
			const box = document.querySelector('[data-chart="' + CSS.escape(chart.id) + '"]');
			return {chart, box, instance: echarts.init(box, null, {renderer: 'svg', height: 100}), drawn: 0};
		});
		const draw = d => {
			d.drawn = d.box.clientWidth;
			const option = bars(d.chart, all, theme(), d.drawn);
			option.legend.selected = Object.fromEntries([...hidden].map(name => [name, false]));
			const height = option.height;
			delete option.height;
			d.box.style.height = height + 'px';
			d.instance.resize({width: d.drawn, height});
			d.instance.setOption(option, {notMerge: true});
		};
		const drawAll = () => {
			drawings.forEach(draw);
			legend(all, theme(), key, hidden, name => {
				if (!hidden.delete(name)) hidden.add(name);
				drawAll();
				[...key.querySelectorAll('button')].find(b => b.textContent === name).focus();
			});
		};
		drawAll();
		for (const d of drawings) {
			new ResizeObserver(() => {
				if (d.box.clientWidth !== d.drawn && d.box.clientWidth !== 0) draw(d);
			}).observe(d.box);
		}
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
	};

	const sections = new Map();
	for (const c of charts) sections.set(c.legend, [...(sections.get(c.legend) || []), c]);
	for (const all of sections.values()) start(all);
})();
