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

	const figures = chart => chart.lines.flatMap(l => l.points.flatMap(p =>
		[p.ns, p.low, p.high, ...(p.published || []).map(m => m.ns)])).filter(ns => ns > 0);

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
			axisLabel: {color: t.soft, fontFamily: font, fontSize, formatter: chart.bytes ? size : tick, hideOverlap: true, alignMaxLabel: margin > 0.02 ? 'right' : null},
			splitLine: {lineStyle: {color: t.line}},
		};
		const all = figures(chart);
		if (!chart.log || all.length === 0) {
			const max = Math.max(...all, 1e-9);
			axis.interval = stepOf(max / room, chart.bytes);
			axis.max = axis.interval * Math.ceil(max / axis.interval);
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

	// whiskers draws the confidence intervals of points: along x for bars, which are
	// horizontal, and along y for lines. The offset moves them down to the bar.
	const whiskers = (name, points, along, offset, stroke) => ({
		type: 'custom', name, silent: true, z: 4, clip: true,
		data: points.filter(p => p.low > 0 && p.high > 0)
			.map(p => along === 'x' ? [p.low, p.x, p.high] : [p.x, p.low, p.high]),
		encode: along === 'x' ? {x: [0, 2], y: 1} : {x: 0, y: [1, 2]},
		renderItem: (params, api) => {
			const cap = 3;
			const v = [0, 1, 2].map(i => api.value(i));
			const [a, b] = along === 'x' ? [api.coord([v[0], v[1]]), api.coord([v[2], v[1]])]
				: [api.coord([v[0], v[1]]), api.coord([v[0], v[2]])];
			const style = {stroke, lineWidth: 1.25, fill: null};
			const segment = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1: y1 + offset, x2, y2: y2 + offset}, style});
			const ends = [a, b].map(p => along === 'x' ? segment(p[0], p[1] - cap, p[0], p[1] + cap)
				: segment(p[0] - cap, p[1], p[0] + cap, p[1]));
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
		add('b', p.name + (chart.kind === 'lines' ? ', ' + chart.x[p.x] : ''));
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
		const lanes = Math.max(0, ...chart.lines[0].points.map(p => (p.published || []).length));
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
	const bars = (chart, t, width) => {
		const narrow = width < narrowBelow;
		const points = chart.lines[0].points;
		const band = bandOf(chart, narrow);
		const axis = narrow ? timeAxis(chart, t, 4, 24 / width) : timeAxis(chart, t, 8, 0.02);
		const names = points.map(p => p.name), times = points.map(p => p.time);
		const edge = chart.kind === 'dots' ? 8 : 4; // half a dot
		const right = Math.max(...times.map(text => widthOf(text, 'bold'))) + 12;
		const left = Math.max(...names.map(text => widthOf(text))) + 12;
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
			height: points.length * band.height + 60,
			grid: {left: narrow ? edge : left, right: narrow ? edge : right, top: 30, bottom: 30, outerBoundsMode: 'none'},
			// The same labels at the top as well: a long chart does not fit a screen.
			xAxis: [axis, Object.assign({}, axis, {position: 'top', splitLine: {show: false}})],
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
				whiskers('intervals', points, 'x', band.bar, t.whisker),
				...marks,
			],
		});
	};

	const lines = (chart, t, width) => {
		const axis = timeAxis(chart, t, 6, 0);
		const longest = Math.max(...(axis.axisLabel.customValues || figures(chart)).map(ns => widthOf(tick(+ns.toPrecision(2)))));
		const series = chart.lines.flatMap((l, i) => {
			const place = (p, ns) => ({value: [p.x, drawable(ns, axis)], point: p});
			const style = {color: color(i)};
			const base = {type: 'line', name: l.name, symbol: shape(i), itemStyle: style, connectNulls: true, clip: false};
			const sources = [...new Set(l.points.flatMap(p => (p.published || []).map(m => m.source)))];
			return [
				...sources.map(source => Object.assign({}, base, {
					symbolSize: 8, z: 3, itemStyle: {color: t.card, borderColor: style.color, borderWidth: 1.5},
					lineStyle: Object.assign({type: 'dotted', width: 1.5, opacity: 0.8}, style),
					data: l.points.flatMap(p => (p.published || []).filter(m => m.source === source).map(m => place(p, m.ns))),
				})),
				whiskers(l.name, l.points, 'y', 0, style.color),
				Object.assign({}, base, {
					symbolSize: 8, z: 5, lineStyle: Object.assign({width: 2}, style),
					data: l.points.map(p => place(p, p.ns)),
				}),
			];
		});
		return Object.assign(common(chart, t), {
			height: width < narrowBelow ? 340 : 420,
			grid: {left: longest + 14, right: 8, top: 12, bottom: 30, outerBoundsMode: 'none'},
			xAxis: {
				type: 'category', data: chart.x,
				axisLine: {lineStyle: {color: t.soft}}, axisTick: {show: false},
				axisLabel: {color: t.soft, fontFamily: font, fontSize, hideOverlap: true},
			},
			yAxis: axis,
			series,
		});
	};

	const svg = (tag, attributes, ...children) => {
		const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
		for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
		el.append(...children);
		return el;
	};

	// swatch is the picture of an entry of a legend, in the shapes of the chart.
	const swatch = (kind, shape, color) => {
		const fill = kind === 'hollow' ? 'none' : color;
		const joined = kind === 'line' || kind === 'hollow';
		const stroke = joined ? color : 'none';
		const outline = {
			circle: ['circle', {cx: 11, cy: 7, r: 4}],
			rect: ['rect', {x: 7, y: 3, width: 8, height: 8}],
			triangle: ['path', {d: 'M11 2.5 15.5 11h-9z'}],
			diamond: ['path', {d: 'M11 2l5 5-5 5-5-5z'}],
			dot: ['circle', {cx: 11, cy: 7, r: 5}],
			bar: ['rect', {x: 1, y: 2, width: 20, height: 10, rx: 2}],
		}[shape];
		const [tag, place] = outline;
		const parts = [svg(tag, Object.assign(place, {fill, stroke, 'stroke-width': 1.5}))];
		if (joined) {
			parts.unshift(svg('path', {d: kind === 'hollow' ? 'M0 7h6M16 7h6' : 'M0 7h22', stroke: color, 'stroke-width': 2,
				'stroke-dasharray': kind === 'hollow' ? '2 2' : 'none', fill: 'none'}));
		}
		return svg('svg', {width: 22, height: 14, viewBox: '0 0 22 14', 'aria-hidden': 'true'}, ...parts);
	};

	// legend says what is what. A button shows and hides what it names.
	const legend = (chart, t, box, hidden, toggle) => {
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
		const sources = chart.sources || [];
		if (chart.kind !== 'lines') {
			const ours = chart.lines[0].points.some(p => p.ours);
			const mark = chart.kind === 'dots' ? 'dot' : 'bar';
			box.replaceChildren(entry('measured here' + (chart.bytes ? '' : ', with 95 % interval'), swatch('bar', mark, t.bar), false),
				...(ours ? [entry('the same, for this project', swatch('bar', mark, t.ours), false)] : []),
				...sources.map((name, i) => entry(name, swatch('mark', shape(i), color(i)), true)));
			return;
		}
		box.replaceChildren(...chart.lines.map((l, i) => entry(l.name, swatch('line', shape(i), color(i)), true)));
		if (sources.length > 0) {
			box.append(entry('hollow, dotted: published by ' + sources.join('; '), swatch('hollow', 'circle', t.soft), false));
		}
	};

	const start = chart => {
		const box = document.querySelector('[data-chart="' + CSS.escape(chart.id) + '"]');
		const key = document.querySelector('[data-legend="' + CSS.escape(chart.id) + '"]');
		const hidden = new Set();
		const instance = echarts.init(box, null, {renderer: 'svg', height: 100});
		const draw = () => {
			const t = theme();
			const width = box.clientWidth;
			const option = (chart.kind === 'lines' ? lines : bars)(chart, t, width);
			option.legend.selected = Object.fromEntries([...hidden].map(name => [name, false]));
			const height = option.height;
			delete option.height;
			box.style.height = height + 'px';
			instance.resize({width, height});
			instance.setOption(option, {notMerge: true});
			legend(chart, t, key, hidden, name => {
				if (!hidden.delete(name)) hidden.add(name);
				draw();
				[...key.querySelectorAll('button')].find(b => b.textContent === name).focus();
			});
		};
		draw();
		let drawn = box.clientWidth;
		new ResizeObserver(() => {
			if (box.clientWidth === drawn || box.clientWidth === 0) return;
			drawn = box.clientWidth;
			draw();
		}).observe(box);
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
	};

	charts.forEach(start);
})();
