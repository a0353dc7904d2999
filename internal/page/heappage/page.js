// Shows a recording: the chart over time, and the flame graph of what is chosen.
(() => {
	const data = JSON.parse(document.getElementById('data').textContent);
	const {names, stacks, times, series, points, of} = data;
	const at = id => document.getElementById(id);
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const font = '"Liberation Sans", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const plural = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
	const percent = x => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + '%';

	const size = bytes => {
		const sign = bytes < 0 ? '-' : '', n = Math.abs(bytes);
		const [unit, name] = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']].find(([u]) => n >= u) || [];
		return sign + (unit ? +(n / unit).toPrecision(3) + ' ' + name : plural(n, 'byte'));
	};
	const seconds = s => s >= 120 ? Math.floor(Math.round(s) / 60) + ' min ' + Math.round(s) % 60 + ' s' : +s.toFixed(s < 10 ? 2 : 1) + ' s';

	// What is chosen. The moments are numbers of times.
	const last = times.length - 1;
	const young = Math.max(0, times.findLastIndex(t => t <= 0.9 * times[last])); // begins here, the last tenth
	const chosen = {from: 0, to: last, next: 'from'};

	const of_ = {
		end: s => s.v[1],
		peak: s => s.v[2],
		old: s => Math.min(s.v[1], s.a[young]),
		between: s => s.a[chosen.to] - s.a[chosen.from],
		temporary: s => s.v[0] - s.v[1],
		allocated: s => s.v[0],
	};
	const end = 'runs' in at('by-stack').dataset ? 'now' : 'at the end';
	const saying = {
		end: 'in use ' + end,
		peak: 'in use when the C heap held the most',
		old: 'in use ' + end + ', of each stack no more than it had after ' + seconds(times[young] || 0) + ': what came since may still be freed',
		temporary: 'allocated and freed again',
		allocated: 'allocated since the program began',
	};

	// tree returns the frames of the flame graph: those of stacks that have something, the largest first. Each frame has its
	// stacks.
	const inverted = 'inverted';
	const path = (s, group) => group === inverted ? s.f.toReversed() : group ? [s[group], ...s.f] : s.f;
	const tree = (value, group) => {
		const node = name => ({name, bytes: 0, inner: new Map(), stacks: []});
		const root = node('all');
		for (const s of stacks) {
			const n = value(s);
			if (n <= 0) continue;
			let at = root;
			for (const f of [null, ...path(s, group)]) {
				if (f !== null && !at.inner.has(f)) at.inner.set(f, node(names[f]));
				if (f !== null) at = at.inner.get(f);
				at.bytes += n;
				at.stacks.push(s);
			}
		}
		const frames = [];
		const add = (node, from, depth) => {
			frames.push({name: node.name, from, to: from + node.bytes, depth, stacks: node.stacks});
			for (const inner of [...node.inner.values()].sort((x, y) => y.bytes - x.bytes)) {
				if (inner.bytes >= root.bytes / 2000) add(inner, from, depth + 1);
				from += inner.bytes;
			}
		};
		if (root.bytes > 0) add(root, 0, 0);
		return frames;
	};

	let total = 0, wanted = '';
	const matches = name => wanted !== '' && name.toLowerCase().includes(wanted);
	// A name has the same color each time.
	const hash = name => [...name].reduce((h, c) => (h * 31 + c.codePointAt(0)) >>> 0, 7);
	const text = f => f.name + ', ' + size(f.to - f.from) + ', ' + percent((f.to - f.from) / total);
	const graph = flameGraph(at('flame'), {
		fill: f => matches(f.name) ? [css('--c3'), 0.9] : f.depth === 0 ? [css('--line'), 1] : [css('--c' + [0, 2, 4, 6, 8][hash(f.name) % 5]), wanted ? 0.18 : 0.3 + hash(f.name) % 4 / 16],
		tip: f => [size(f.to - f.from), percent((f.to - f.from) / total)],
		zoomed: (f, whole) => {
			at('flame-reset').hidden = whole;
			at('flame-text').textContent = !whole ? text(f) : 'The width of a function is its bytes' +
				(at('group').value === inverted ? ', and below it are those that have called it' : '') + '. Click on one to enlarge it: the table is of it alone.';
			sums(f, whole);
		},
		at: f => { at('flame-text').textContent = text(f); },
	});
	at('flame-reset').addEventListener('click', graph.whole);

	// found says how much the stacks have that have a function with the words.
	const found = value => {
		if (wanted === '') { at('found').textContent = ''; return; }
		let n = 0, count = 0;
		for (const s of stacks) {
			const v = value(s);
			if (v > 0 && s.f.some(f => matches(names[f]))) { n += v; count++; }
		}
		at('found').textContent = 'Found: ' + size(n) + (total ? ', ' + percent(n / total) : '') + ', in ' + plural(count, 'stack') + '.';
	};

	// sums is the table below the graph, of what is enlarged. It has functions, or libraries and the like if the whole is shown.
	const mostRows = 25;
	const titles = {l: 'library', t: 'thread', g: 'label'};
	let sorted = 'own', shown = null;
	const sums = (frame, whole) => {
		shown = [frame, whole];
		const value = of_[at('what').value], group = whole && titles[at('group').value] ? at('group').value : '';
		const by = new Map(); // own and with what it has called
		const row = key => by.get(key) || by.set(key, {own: 0, total: 0}).get(key);
		for (const s of frame ? frame.stacks : []) {
			const n = value(s);
			row(group ? s[group] : s.f.length ? s.f[s.f.length - 1] : s.l).own += n;
			if (!group) for (const f of new Set(s.f)) row(f).total += n;
		}
		const all = [...by].sort(([, x], [, y]) => group || sorted === 'own' ? y.own - x.own : y.total - x.total || y.own - x.own);
		const some = group ? all : all.filter(([f, n]) => wanted ? matches(names[f]) : n.own > 0 || sorted === 'total');
		at('sums-title').textContent = 'By ' + (titles[group] || 'function') + (whole ? '' : ', in ' + frame.name);
		at('sums-of').textContent = titles[group] || 'function';
		for (const [key, words] of group ? [['own', 'bytes'], ['total', 'share']] : [['own', 'own'], ['total', 'total']]) {
			const button = at('sort-' + key);
			button.textContent = words;
			button.disabled = group !== '';
			button.parentElement.ariaSort = !group && sorted === key ? 'descending' : 'none';
		}
		at('sums').replaceChildren(...some.slice(0, mostRows).map(([key, n]) => {
			const row = document.createElement('tr');
			for (const [tag, words, kind] of [['td', size(n.own), 'n'], ['td', group ? percent(n.own / total) : size(n.total), 'n'], ['th', names[key], '']]) {
				const cell = row.appendChild(document.createElement(tag));
				cell.textContent = words;
				if (kind) cell.className = kind; else cell.scope = 'row';
			}
			return row;
		}));
		at('more').textContent = some.length > mostRows ? 'And ' + plural(some.length - mostRows, 'more row') + '. What is found with Find is shown.' : '';
	};

	const show = () => {
		const what = at('what').value, group = at('group').value, value = of_[what];
		const frames = tree(value, group);
		total = frames.length ? frames[0].to : 0;
		let words = (total ? size(total) : 'Nothing was') + ' ';
		if (what === 'between') {
			const less = stacks.reduce((n, s) => n + Math.max(0, -value(s)), 0);
			words = 'From ' + seconds(times[chosen.from]) + ' to ' + seconds(times[chosen.to]) + ' these stacks have grown by ' + size(total) + '; others are smaller by ' + size(less) + '.';
		} else {
			words += saying[what] + '.';
		}
		at('about').textContent = words;
		graph.show(frames);
		found(value);
		if (!frames.length) sums(null, true);
	};

	// The chart over time.
	const chart = echarts.init(at('chart'), null, {renderer: 'svg'});
	const used = of.map((s, i) => i).filter(i => series[i] && series[i].some(n => n > 0));
	const drawChart = () => {
		const soft = css('--soft'), line = css('--line'), color = i => css('--c' + of[i].color);
		const label = {color: soft, fontFamily: font, fontSize: 12, hideOverlap: true};
		const most = Math.max(1, ...points.map((_, k) => used.reduce((n, i) => n + series[i][k], 0)));
		const room = 4, step = 2 ** Math.ceil(Math.log2(most / room));
		chart.setOption({
			animation: false,
			grid: {left: 64, right: 16, top: 10, bottom: 28, outerBoundsMode: 'none'},
			xAxis: {
				type: 'value', min: 0, max: Math.max(times[last], points[points.length - 1]), axisLabel: Object.assign({formatter: s => +s.toPrecision(3) + ' s', alignMaxLabel: 'right'}, label),
				splitLine: {show: false}, axisLine: {lineStyle: {color: line}}, splitNumber: Math.max(2, Math.floor(at('chart').clientWidth / 110)),
			},
			yAxis: {type: 'value', min: 0, max: step * Math.ceil(most / step), interval: step, axisLabel: Object.assign({formatter: size}, label), splitLine: {lineStyle: {color: line}}},
			tooltip: {
				trigger: 'axis', confine: true, backgroundColor: css('--card'), borderColor: line, textStyle: {color: css('--text'), fontSize: 12},
				formatter: all => {
					const k = all[0].dataIndex, div = document.createElement('div');
					div.append(seconds(points[k]));
					for (const i of used) div.append(document.createElement('br'), of[i].name + ' ' + size(series[i][k]));
					return div;
				},
			},
			series: [
				...used.map(i => ({
					type: 'line', name: of[i].name, stack: 'all', symbol: 'none', lineStyle: {width: 1, color: color(i)}, itemStyle: {color: color(i)},
					areaStyle: {color: color(i), opacity: 0.45}, data: points.map((t, k) => [t, series[i][k]]),
				})),
				{
					type: 'custom', silent: true, z: 5, data: [times[chosen.from], times[chosen.to]].map(t => [t, 0]),
					renderItem: (params, api) => {
						const x = api.coord([api.value(0), 0])[0], box = params.coordSys;
						return {type: 'line', shape: {x1: x, y1: box.y, x2: x, y2: box.y + box.height}, style: {stroke: css('--text'), lineWidth: 1.5, lineDash: [4, 3]}};
					},
				},
			],
		}, true);
	};

	// choose sets a moment, and shows what has grown.
	const choose = (end, m) => {
		chosen[end] = m;
		if (chosen.from > chosen.to) [chosen.from, chosen.to] = [chosen.to, chosen.from];
		at('from').value = chosen.from;
		at('to').value = chosen.to;
		at('what').value = 'between';
		sayMoments();
		drawChart();
		show();
	};
	const sayMoments = () => {
		const used = m => stacks.reduce((n, s) => n + Math.max(0, s.a[m]), 0);
		at('between').textContent = 'At ' + seconds(times[chosen.from]) + ' ' + size(used(chosen.from)) + ' of C were in use, at ' + seconds(times[chosen.to]) + ' ' + size(used(chosen.to)) + '.';
		for (const end of ['from', 'to']) at(end).setAttribute('aria-valuetext', seconds(times[chosen[end]]));
	};

	if (points.length < 2 || times.length < 2) {
		for (const what of ['between', 'old']) at('what').querySelector('[value=' + what + ']').remove();
	}
	if (stacks.length > 0) {
		at('by-stack').hidden = false;
		for (const id of ['what', 'group']) at(id).addEventListener('change', show);
		at('find').addEventListener('input', () => {
			wanted = at('find').value.trim().toLowerCase();
			graph.draw();
			found(of_[at('what').value]);
			sums(...shown);
		});
		for (const link of document.querySelectorAll('[data-find]')) {
			link.addEventListener('click', () => {
				at('what').value = 'end';
				at('group').value = '';
				at('find').value = link.dataset.find;
				show();
				at('find').dispatchEvent(new Event('input'));
			});
		}
		for (const key of ['own', 'total']) at('sort-' + key).addEventListener('click', () => { sorted = key; sums(...shown); });
	}
	if (points.length > 1 && times.length > 1) {
		at('over-time').hidden = false;
		at('keys').replaceChildren(...used.map(i => {
			const key = document.createElement('li'), mark = key.appendChild(document.createElement('i'));
			mark.style.background = 'var(--c' + of[i].color + ')';
			key.append(of[i].name);
			return key;
		}));
		for (const end of ['from', 'to']) {
			at(end).max = last;
			at(end).value = chosen[end];
			at(end).addEventListener('input', () => choose(end, +at(end).value));
		}
		chart.getZr().on('click', e => {
			const x = chart.convertFromPixel({gridIndex: 0}, [e.offsetX, e.offsetY])[0];
			let m = 0;
			times.forEach((t, i) => { if (Math.abs(t - x) < Math.abs(times[m] - x)) m = i; });
			const end = chosen.next;
			chosen.next = end === 'from' ? 'to' : 'from';
			if (end === 'from') chosen.to = last;
			choose(end, m);
		});
		chart.resize();
		sayMoments();
		drawChart();
		window.addEventListener('resize', () => { chart.resize(); drawChart(); });
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawChart);
	}
	if (stacks.length > 0) show();
})();
