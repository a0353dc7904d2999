// Draws the flame graph from the frames in the page. A click enlarges a frame.
'use strict';

(() => {
	const data = JSON.parse(document.getElementById('frames').textContent);
	const box = document.getElementById('flame');
	const reset = document.getElementById('flame-reset');
	const text = document.getElementById('flame-text');
	if (!data.frames || data.frames.length === 0) return;

	const row = 22; // pixels
	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const font = '12px "Liberation Sans", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
	const ruler = document.createElement('canvas').getContext('2d');
	ruler.font = font;
	const percent = x => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + '%';
	const rest = data.names.length - 1;

	// fit shortens a name to a width.
	const fit = (name, width) => {
		if (width < 24) return '';
		if (ruler.measureText(name).width <= width) return name;
		let n = Math.floor(name.length * width / ruler.measureText(name).width);
		while (n > 1 && ruler.measureText(name.slice(0, n) + '…').width > width) n--;
		return n > 1 ? name.slice(0, n) + '…' : '';
	};
	const short = name => name.slice(name.lastIndexOf('/') + 1);

	// main is the mechanism that has most of a frame.
	const main = mix => mix.indexOf(Math.max(...mix));

	let shown = data.frames[0];
	box.style.height = (data.depth * row + 4) + 'px';
	const chart = echarts.init(box, null, {renderer: 'svg'});

	const draw = () => {
		const card = css('--card'), words = css('--text'), line = css('--line');
		const colors = data.colors.map(c => css('--c' + c));
		const span = shown.to - shown.from || 1;
		const visible = data.frames.filter(f => f.to > shown.from + 1e-9 && f.from < shown.to - 1e-9 &&
			(f.depth >= shown.depth || f.from <= shown.from + 1e-9 && f.to >= shown.to - 1e-9) && f.to - f.from > span / 2000);
		const width = box.clientWidth;
		chart.setOption({
			animation: false,
			grid: {left: 0, right: 0, top: 0, bottom: 0},
			xAxis: {type: 'value', min: shown.from, max: shown.to, show: false},
			yAxis: {type: 'value', min: 0, max: data.depth, inverse: true, show: false},
			tooltip: {
				confine: true, backgroundColor: card, borderColor: line, textStyle: {color: words, fontSize: 12},
				formatter: p => {
					const f = visible[p.dataIndex], div = document.createElement('div');
					const name = document.createElement('b');
					name.textContent = f.name;
					name.style.whiteSpace = 'normal';
					name.style.overflowWrap = 'anywhere';
					div.append(name, document.createElement('br'), percent(f.to - f.from) + ' of the processor time');
					f.mix.forEach((share, i) => {
						if (share >= 0.0005) div.append(document.createElement('br'), data.names[i] + ' ' + percent(share));
					});
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
					const w = Math.max(end - x - 1, 0.5), m = main(f.mix), all = f.mix.reduce((a, b) => a + b, 0) || 1;
					const children = [{
						type: 'rect', shape: {x, y: y + 1, width: w, height: row - 2, r: 2},
						style: {fill: m === rest ? line : colors[m], opacity: m === rest ? 1 : 0.35 + 0.3 * f.mix[m] / all},
					}];
					let at = x;
					f.mix.forEach((share, i) => {
						const part = w * share / all;
						if (part > 0.5) children.push({type: 'rect', shape: {x: at, y: y + row - 5, width: part, height: 3}, style: {fill: colors[i]}});
						at += part;
					});
					const label = fit(short(f.name), w - 8);
					if (label) {
						children.push({type: 'text', style: {x: x + 4, y: y + row / 2 - 2, text: label, fill: words, font, textVerticalAlign: 'middle'}});
					}
					return {type: 'group', children};
				},
			}],
		}, true);
		chart.off('click');
		chart.on('click', p => { zoom(visible[p.dataIndex]); });
		return width;
	};

	const about = text.innerHTML;
	const zoom = f => {
		shown = f;
		reset.hidden = f === data.frames[0];
		if (reset.hidden) {
			text.innerHTML = about;
		} else {
			text.textContent = f.name + ', ' + percent(f.to - f.from) + ' of the processor time';
		}
		draw();
	};
	reset.addEventListener('click', () => zoom(data.frames[0]));
	draw();
	window.addEventListener('resize', () => { chart.resize(); draw(); });
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
})();
