// Writes values down: `inspect` for people, `json` for values that JSON holds without loss, `table`
// for the console.
(() => {
    "use strict";
    const DEPTH_MAX = 4;
    const ITEMS_MAX = 100;
    const TEXT_MAX = 10000;
    const LINE_MAX = 72;
    const JSON_DEPTH_MAX = 20;
    const JSON_NODES_MAX = 20000;

    const quote = (text) =>
        JSON.stringify(text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text);

    const nameOf = (value) => {
        try {
            const made = Object.getPrototypeOf(value)?.constructor;
            return typeof made === "function" ? made.name : "";
        } catch {
            return "";
        }
    };

    const enclosed = (open, close, items, more) => {
        if (more > 0) items.push(`… ${more} more`);
        if (items.length === 0) return open + close;
        const line = items.join(", ");
        if (line.length <= LINE_MAX && !line.includes("\n")) return `${open} ${line} ${close}`;
        const lines = items.map((item) => `  ${item.replaceAll("\n", "\n  ")}`);
        return `${open}\n${lines.join(",\n")}\n${close}`;
    };

    const key = (name) => {
        if (typeof name === "symbol") return `[${name.toString()}]`;
        return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
    };

    const property = (value, name, depth, seen) => {
        const found = Object.getOwnPropertyDescriptor(value, name);
        if (found === undefined) return `${key(name)}: undefined`;
        if ("value" in found) return `${key(name)}: ${inspect(found.value, depth + 1, seen)}`;
        return `${key(name)}: [Getter]`;
    };

    const fields = (value, depth, seen, skips) => {
        const names = Reflect.ownKeys(value).filter(
            (name) => !skips(name) && Object.getOwnPropertyDescriptor(value, name)?.enumerable,
        );
        const shown = names.slice(0, ITEMS_MAX);
        return {
            items: shown.map((name) => property(value, name, depth, seen)),
            more: names.length - shown.length,
        };
    };

    const taken = (iterable, size, write) => {
        const items = [];
        for (const item of iterable) {
            if (items.length === ITEMS_MAX) break;
            items.push(write(item));
        }
        return { items, more: Math.max(size - items.length, 0) };
    };

    const error = (value) => {
        const stack = typeof value.stack === "string" ? value.stack.trimEnd() : "";
        const place = stack.split("\n").map((line) => line.trim()).find((line) => line.startsWith("at ")) ?? "";
        return `${value.name}: ${value.message}${place === "" ? "" : `\n    ${place}`}`;
    };

    const list = (value, name, depth, seen) => {
        const items = [];
        const shown = Math.min(value.length, ITEMS_MAX);
        for (let at = 0; at < shown; at += 1) {
            items.push(at in value ? inspect(value[at], depth + 1, seen) : "<empty>");
        }
        const open = name === "" || name === "Array" ? "[" : `${name}(${value.length}) [`;
        return enclosed(open, "]", items, value.length - shown);
    };

    const object = (value, depth, seen) => {
        const name = nameOf(value);
        if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
            return list(value, name, depth, seen);
        }
        if (value instanceof Map) {
            const { items, more } = taken(
                value,
                value.size,
                ([from, to]) =>
                    `${inspect(from, depth + 1, seen)} => ${inspect(to, depth + 1, seen)}`,
            );
            return enclosed(`${name}(${value.size}) {`, "}", items, more);
        }
        if (value instanceof Set) {
            const { items, more } = taken(value, value.size, (item) =>
                inspect(item, depth + 1, seen),
            );
            return enclosed(`${name}(${value.size}) {`, "}", items, more);
        }
        const { items, more } = fields(value, depth, seen, () => false);
        const open = name === "Object" ? "{" : name === "" ? "[Object: null] {" : `${name} {`;
        return enclosed(open, "}", items, more);
    };

    const inspect = (value, depth = 0, seen = []) => {
        switch (typeof value) {
            case "string":
                return quote(value);
            case "bigint":
                return `${value}n`;
            case "symbol":
                return value.toString();
            case "function": {
                // Only classes and the language's own functions have a prototype that stays.
                const own = Object.getOwnPropertyDescriptor(value, "prototype");
                const isClass = own?.writable === false && globalThis[value.name] !== value;
                const kind = isClass ? "class" : "Function:";
                return `[${kind} ${value.name || "(anonymous)"}]`;
            }
            case "object":
                break;
            default:
                return Object.is(value, -0) ? "-0" : String(value);
        }
        if (value === null) return "null";
        if (value instanceof Error) return error(value);
        if (value instanceof Date) {
            return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
        }
        if (value instanceof RegExp) return String(value);
        if (value instanceof Promise) return "Promise { <not awaited> }";
        if (value instanceof Number || value instanceof String || value instanceof Boolean) {
            return `[${nameOf(value)}: ${inspect(value.valueOf())}]`;
        }
        if (value instanceof WeakMap || value instanceof WeakSet) return `${nameOf(value)} { … }`;
        if (seen.includes(value)) return "[Circular]";
        if (depth >= DEPTH_MAX) return Array.isArray(value) ? "[Array]" : `[${nameOf(value)}]`;
        return object(value, depth, [...seen, value]);
    };

    const isPlain = (value, depth, left) => {
        left.nodes -= 1;
        if (left.nodes < 0 || depth > JSON_DEPTH_MAX) return false;
        if (value === null) return true;
        switch (typeof value) {
            case "string":
            case "boolean":
                return true;
            case "number":
                return Number.isFinite(value);
            case "object":
                break;
            default:
                return false;
        }
        if (Array.isArray(value)) {
            for (let at = 0; at < value.length; at += 1) {
                if (!isPlain(value[at], depth + 1, left)) return false;
            }
            return true;
        }
        const prototype = Object.getPrototypeOf(value);
        if (prototype !== Object.prototype && prototype !== null) return false;
        return Reflect.ownKeys(value).every((name) => {
            if (typeof name === "symbol") return false;
            const found = Object.getOwnPropertyDescriptor(value, name);
            return (
                found !== undefined &&
                found.enumerable &&
                "value" in found &&
                isPlain(found.value, depth + 1, left)
            );
        });
    };

    const json = (value) =>
        isPlain(value, 0, { nodes: JSON_NODES_MAX }) ? JSON.stringify(value) : undefined;

    const table = (data) => {
        const rows = Object.entries(data).slice(0, ITEMS_MAX);
        const columns = [];
        for (const [, row] of rows) {
            if (typeof row !== "object" || row === null) continue;
            for (const name of Object.keys(row)) {
                if (!columns.includes(name) && columns.length < 20) columns.push(name);
            }
        }
        const hasPlain = rows.some(([, row]) => typeof row !== "object" || row === null);
        const cell = (value) => (typeof value === "string" ? value : inspect(value, DEPTH_MAX - 1));
        const lines = [["(index)", ...columns, ...(hasPlain ? ["Values"] : [])]];
        for (const [index, row] of rows) {
            const isObject = typeof row === "object" && row !== null;
            const cells = columns.map((name) =>
                isObject && Object.hasOwn(row, name) ? cell(row[name]) : "",
            );
            lines.push([index, ...cells, ...(hasPlain ? [isObject ? "" : cell(row)] : [])]);
        }
        const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
        const written = lines.map((line) =>
            line.map((text, at) => text.padEnd(widths[at])).join(" | ").trimEnd(),
        );
        written.splice(1, 0, widths.map((width) => "-".repeat(width)).join("-+-"));
        return written.join("\n");
    };

    return { inspect: (value) => inspect(value), json, table };
})();
