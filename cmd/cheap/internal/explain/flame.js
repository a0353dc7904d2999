// Shows the frames in the page as a flame graph.
(() => {
	const data = JSON.parse(document.getElementById('frames').textContent);
	const reset = document.getElementById('flame-reset');
	const text = document.getElementById('flame-text');
	if (!data.frames || data.frames.length === 0) return;

	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const percent = x => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + '%';
	const rest = data.names.length - 1;
	const color = i => css('--c' + data.colors[i]);
	const sum = mix => mix.reduce((a, b) => a + b, 0) || 1;
	const of = f => percent(f.to - f.from) + ' of the processor time';

	const about = text.innerHTML;
	const graph = flameGraph(document.getElementById('flame'), {
		// The mechanism that has most of a frame.
		fill: f => {
			const m = f.mix.indexOf(Math.max(...f.mix));
			return m === rest ? [css('--line'), 1] : [color(m), 0.35 + 0.3 * f.mix[m] / sum(f.mix)];
		},
		parts: f => f.mix.map((share, i) => [color(i), share / sum(f.mix)]),
		tip: f => [of(f), ...f.mix.flatMap((share, i) => share >= 0.0005 ? [data.names[i] + ' ' + percent(share)] : [])],
		zoomed: (f, whole) => {
			reset.hidden = whole;
			if (whole) text.innerHTML = about;
			else text.textContent = f.name + ', ' + of(f);
		},
		at: f => { text.textContent = f.name + ', ' + of(f); },
	});
	reset.addEventListener('click', graph.whole);
	graph.show(data.frames);
})();
