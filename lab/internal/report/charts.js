// Draws the charts of the page from the figures in it. The colors are those of the style, so that only
// the style knows light and dark.
'use strict';

(() => {
	const charts = JSON.parse(document.getElementById('charts').textContent) || [];
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const font = '"Liberation Sans", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const isOurs = name => /(^|-)(own|heap|local|arena|dropin|list|reference|condition|cheap)(-|$)/.test(name) && !/(malloc|alloc|native|libc|modernc)$/.test(name);

	// The units of an axis: from which figure on, how much it is, and its name.
	const units = {
		ns: [[1e9, 1e9, ' s'], [1e6, 1e6, ' ms'], [1e4, 1e3, ' µs'], [0, 1, ' ns']],
		bytes: [[2 ** 30, 2 ** 30, ' GiB'], [2 ** 20, 2 ** 20, ' MiB'], [0, 2 ** 10, ' KiB']],
		times: [[0, 1, '×']],
	};
	const written = unit => x => {
		const [, size, name] = units[unit].find(([from]) => x >= from * 0.9999);
		return x === 0 ? '0' : +(x / size).toPrecision(4) + name;
	};

	const draw = (chart, box, instance) => {
		const width = box.clientWidth, narrow = width < 560;
		const text = {color: css('--text'), fontFamily: font, fontSize: narrow ? 10 : 12};
		const all = chart.series.flatMap(s => s.points.map(p => p.value)).filter(v => v > 0);
		const least = Math.min(...all), most = Math.max(...all, 1e-9);
		// A bar twice as long is twice as much, if the figures fit one scale; else they are dots.
		const log = chart.unit === 'ns' && (chart.lines || most > 30 * least);
		const step = most / (narrow ? 3 : 6), power = 10 ** Math.floor(Math.log10(step));
		const interval = chart.unit === 'bytes' ? 2 ** Math.ceil(Math.log2(step)) : power * [1, 2, 5, 10].find(s => s * power >= step * 0.9999);
		const value = {
			axisLabel: {...text, formatter: written(chart.unit), hideOverlap: true, showMinLabel: !log, showMaxLabel: !log},
			splitLine: {lineStyle: {color: css('--line')}},
			...(log ? {type: 'log', min: least / 1.5, max: most * 1.5} : {type: 'value', interval, max: interval * Math.ceil(most / interval)}),
		};
		const category = (data, more) => ({
			type: 'category', data, axisTick: {show: false}, axisLine: {show: false}, inverse: !chart.lines,
			axisLabel: {...text, interval: 0, ...more},
		});
		const [first] = chart.series, figures = chart.names.map((_, i) => (first.points.find(p => p.at === i) || {}).text);
		const names = {...category(chart.names, {}), name: chart.over, nameLocation: 'middle', nameGap: 30, nameTextStyle: text};
		// A legend of several lines moves the chart down.
		const legend = chart.lines || chart.series.length > 1;
		const lines = Math.ceil(chart.series.reduce((n, s) => n + 50 + 7 * s.name.length, 0) / width);
		const top = legend ? 12 + 22 * lines : 8;
		const height = top + (chart.lines ? 400 : chart.names.length * 22 + 40);
		box.style.height = height + 'px';
		instance.resize({width, height});
		instance.setOption({
			animation: false,
			textStyle: text,
			color: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(i => css('--c' + i)),
			legend: {show: legend, top: 0, left: 0, textStyle: text, inactiveColor: css('--line')},
			tooltip: {confine: true, backgroundColor: css('--card'), borderColor: css('--line'), textStyle: text, formatter: p => {
				const tip = document.createElement('span');
				tip.textContent = p.seriesName + ', ' + p.name + ': ' + p.data.text;
				return tip;
			}},
			grid: {left: 8, right: 16, top, bottom: chart.lines ? 44 : 28, containLabel: true},
			xAxis: chart.lines ? names : value,
			yAxis: chart.lines ? value : [names, category(figures, {fontWeight: 'bold'})],
			series: chart.series.map(s => ({
				name: s.name,
				type: s.published ? 'scatter' : chart.lines ? 'line' : log ? 'scatter' : 'bar',
				symbol: s.published ? 'diamond' : 'circle', symbolSize: s.published ? 9 : chart.lines ? 6 : 11,
				barMaxWidth: 14, z: s.published ? 4 : 3,
				...(s.published || chart.lines ? {} : {itemStyle: {color: css('--bar')}}),
				data: s.points.map(p => ({
					name: chart.names[p.at], text: p.text,
					value: chart.lines ? [p.at, p.value] : [p.value, p.at],
					...(s.published || chart.lines ? {} : {itemStyle: {color: css(isOurs(chart.names[p.at]) ? '--ours' : '--bar')}}),
				})),
			})),
		}, {notMerge: true});
	};

	for (const chart of charts) {
		const box = document.querySelector('[data-chart="' + CSS.escape(chart.id) + '"]');
		const instance = echarts.init(box, null, {renderer: 'svg', height: 100});
		let drawn = 0;
		new ResizeObserver(() => {
			if (box.clientWidth !== drawn && box.clientWidth !== 0) draw(chart, box, instance, drawn = box.clientWidth);
		}).observe(box);
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(chart, box, instance));
	}
})();
