// Asks Perfetto's trace processor what it finds in a trace of `examples/trace.rs`: `node perfetto.js FOLDER TRACE`. The folder is
// that of Perfetto's viewer, whose worker this runs. The messages are those of `protos/perfetto/trace_processor/`.
const fs = require('fs');
const path = require('path');

const [folder, trace] = process.argv.slice(2);

// What must be in the trace, as conditions on a slice `s`, its track `t`, its parent `p` and the slice `w` from which an arrow leads to it.
const expected = {
  'the order of tasks': "t.parent_id IN (SELECT id FROM track WHERE name = 'tasks' AND extract_arg(source_arg_set_id, 'child_ordering') = 'chronological')",
  'a run on a worker': "s.name GLOB 'buyer *' AND t.id IN (SELECT k.id FROM thread_track k JOIN thread USING (utid) WHERE thread.name GLOB 'worker [01]')",
  'the run of a buyer': "t.name GLOB 'buyer *' AND s.name GLOB 'runs on worker [01]' AND s.depth = 0",
  'a contended lock': "t.name GLOB 'buyer *' AND s.name = 'waits: mutex'",
  'a timer': "t.name GLOB 'buyer *' AND s.name = 'waits: sleep'",
  'a channel': "t.name GLOB 'main *' AND s.name = 'waits: channel receive'",
  'a span in a span': "t.name = 'spans' AND s.name = 'take' AND p.name = 'buy'",
  'an arrow from the owner of a lock': "t.name GLOB 'buyer *' AND s.name GLOB 'runs on *' AND w.name GLOB 'wakes buyer *'",
  'an arrow from a timer': "t.name GLOB 'buyer *' AND s.name GLOB 'runs on *' AND w.name GLOB 'timer wakes buyer *'",
  'an arrow from a spawn': "t.name GLOB 'buyer *' AND s.name GLOB 'runs on *' AND w.name GLOB 'spawns buyer *'",
};
const found = `FROM slice s JOIN track t ON t.id = s.track_id LEFT JOIN slice p ON p.id = s.parent_id
    LEFT JOIN flow f ON f.slice_in = s.id LEFT JOIN slice w ON w.id = f.slice_out`;
// Each row is a text: what is wrong, and last how much there is.
const query = `
  SELECT 'error: ' || name || ' ' || value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0
  UNION ALL SELECT 'not ended: ' || name FROM slice WHERE dur < 0
  UNION ALL SELECT 'over another: ' || name FROM slice WHERE depth > 0 AND (name GLOB 'runs on *' OR name GLOB 'waits: *' OR name = 'ready')
  UNION ALL SELECT 'leads back: ' || w.name ${found} WHERE w.ts > s.ts + 1000
  ${Object.entries(expected).map(([name, condition]) => `
  UNION ALL SELECT 'missing: ${name}' WHERE NOT EXISTS (SELECT 1 ${found} WHERE ${condition})`).join('')}
  UNION ALL SELECT 'slices: ' || COUNT(*) || ', arrows: ' || (SELECT COUNT(*) FROM flow) FROM slice`;

function varint(number) {
  return number < 128 ? [number] : [number % 128 | 128, ...varint(Math.floor(number / 128))];
}

function field(number, value) {
  return typeof value === 'number'
    ? Buffer.from([...varint(number * 8), ...varint(value)])
    : Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(value.length)]), value]);
}

// Returns the values of a field that are strings or messages.
function values(message, wanted) {
  const all = [];
  let at = 0;
  const next = () => {
    let number = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = message[at++];
      number += (byte & 127) * unit;
      if (byte < 128) return number;
    }
  };
  while (at < message.length) {
    const key = next();
    const size = next();
    if (key % 8 !== 2) continue;
    if (key >> 3 === wanted) all.push(message.subarray(at, at + size));
    at += size;
  }
  return all;
}

// The worker's global scope: it loads its WebAssembly by a request, and gets a port from its page.
const scope = { location: { href: '' } };
class Request {
  open(_, url) {
    this.file = path.join(folder, path.basename(url));
  }
  send() {
    this.response = fs.readFileSync(this.file);
  }
}
const source = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
const names = ['self', 'process', 'XMLHttpRequest', 'WorkerGlobalScope', 'console'];
new Function(...names, source)(scope, undefined, Request, Object, { log() {}, warn() {}, error: console.error });
const replies = [];
const port = { postMessage: reply => replies.push(Buffer.from(reply)) };
scope.onmessage({ data: port });

let requests = 0;
// Returns the answers to a request.
function ask(method, ...fields) {
  replies.length = 0;
  const request = Buffer.concat([field(1, ++requests), field(2, method), ...fields]);
  port.onmessage({ data: new Uint8Array(field(1, request)) });
  return values(Buffer.concat(replies), 1);
}

// The module is ready once promises have run.
setImmediate(() => {
  ask(1, field(101, fs.readFileSync(trace)));
  ask(2);
  const results = ask(3, field(103, field(1, Buffer.from(query)))).flatMap(answer => values(answer, 203));
  const errors = results.flatMap(result => values(result, 2)).map(String);
  const batches = results.flatMap(result => values(result, 3));
  const rows = batches.flatMap(batch => values(batch, 5)).flatMap(text => String(text).split('\0').slice(0, -1));
  console.log([...errors, ...rows].join('\n'));
  process.exitCode = errors.length === 0 && rows.length === 1 ? 0 : 1;
});
