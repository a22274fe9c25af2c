// Small forms of what programs expect beside the language: base64, UTF-8, URLs, structuredClone.
(() => {
    "use strict";
    const define = (name, value) =>
        Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    define("btoa", (input) => {
        const text = String(input);
        let made = "";
        for (let at = 0; at < text.length; at += 3) {
            const codes = [0, 1, 2].map((more) => text.charCodeAt(at + more));
            if (codes.some((code) => code > 255)) {
                throw new RangeError("btoa takes characters up to U+00FF only");
            }
            const bits = ((codes[0] || 0) << 16) | ((codes[1] || 0) << 8) | (codes[2] || 0);
            const last = Math.min(text.length - at, 3);
            for (let place = 0; place < 4; place += 1) {
                made += place <= last ? LETTERS[(bits >> (18 - 6 * place)) & 63] : "=";
            }
        }
        return made;
    });

    define("atob", (input) => {
        const text = String(input).replace(/[\t\n\f\r ]/g, "").replace(/={1,2}$/, "");
        if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) {
            throw new RangeError("atob takes base64 only");
        }
        let made = "";
        let bits = 0;
        let have = 0;
        for (const letter of text) {
            bits = ((bits << 6) | LETTERS.indexOf(letter)) & 0xffffff;
            have += 6;
            if (have >= 8) {
                have -= 8;
                made += String.fromCharCode((bits >> have) & 255);
            }
        }
        return made;
    });

    define("TextEncoder", class TextEncoder {
        encoding = "utf-8";
        encode(text = "") {
            const bytes = [];
            for (const letter of String(text)) {
                let code = letter.codePointAt(0);
                if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
                if (code < 0x80) bytes.push(code);
                else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
                else if (code < 0x10000) {
                    bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
                } else {
                    bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63));
                    bytes.push(0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
                }
            }
            return Uint8Array.from(bytes);
        }
    });

    define("TextDecoder", class TextDecoder {
        encoding = "utf-8";
        constructor(label = "utf-8") {
            if (!/^(utf-?8|unicode-1-1-utf-8)$/i.test(label)) {
                throw new RangeError(`TextDecoder knows utf-8 only, not ${label}`);
            }
        }
        decode(input = new Uint8Array()) {
            const bytes = ArrayBuffer.isView(input)
                ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
                : new Uint8Array(input);
            let text = "";
            for (let at = 0; at < bytes.length; ) {
                const first = bytes[at];
                const more = first < 0x80 ? 0 : first >> 5 === 6 ? 1 : first >> 4 === 14 ? 2 : first >> 3 === 30 ? 3 : -1;
                let code = more === 0 ? first : first & (0x3f >> more);
                let taken = 1;
                while (taken <= more && (bytes[at + taken] & 0xc0) === 0x80) {
                    code = (code << 6) | (bytes[at + taken] & 63);
                    taken += 1;
                }
                const least = [0, 0x80, 0x800, 0x10000][more];
                const isGood = more >= 0 && taken === more + 1 && code >= least && code <= 0x10ffff
                    && !(code >= 0xd800 && code <= 0xdfff);
                text += isGood ? String.fromCodePoint(code) : "\ufffd";
                at += taken;
            }
            return text.startsWith("\ufeff") ? text.slice(1) : text;
        }
    });

    const decode = (text) => {
        const spaced = text.replaceAll("+", " ");
        try {
            return decodeURIComponent(spaced);
        } catch {
            return spaced;
        }
    };
    const encode = (text) => encodeURIComponent(text).replaceAll("%20", "+");

    class URLSearchParams {
        #pairs = [];
        constructor(from = "") {
            if (typeof from === "string") {
                for (const pair of from.replace(/^\?/, "").split("&")) {
                    if (pair === "") continue;
                    const at = pair.indexOf("=");
                    const name = at < 0 ? pair : pair.slice(0, at);
                    this.#pairs.push([decode(name), at < 0 ? "" : decode(pair.slice(at + 1))]);
                }
            } else {
                const pairs = typeof from[Symbol.iterator] === "function" ? from : Object.entries(from);
                for (const [name, value] of pairs) this.append(name, value);
            }
        }
        append(name, value) {
            this.#pairs.push([String(name), String(value)]);
        }
        delete(name) {
            this.#pairs = this.#pairs.filter(([one]) => one !== name);
        }
        get(name) {
            return this.#pairs.find(([one]) => one === name)?.[1] ?? null;
        }
        getAll(name) {
            return this.#pairs.filter(([one]) => one === name).map(([, value]) => value);
        }
        has(name) {
            return this.#pairs.some(([one]) => one === name);
        }
        set(name, value) {
            const at = this.#pairs.findIndex(([one]) => one === name);
            if (at < 0) return this.append(name, value);
            this.#pairs = this.#pairs.filter(([one], index) => index <= at || one !== name);
            this.#pairs[at] = [String(name), String(value)];
        }
        [Symbol.iterator]() {
            return this.#pairs[Symbol.iterator]();
        }
        entries() {
            return this[Symbol.iterator]();
        }
        toString() {
            return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
        }
    }
    define("URLSearchParams", URLSearchParams);

    const PORTS = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21" };
    const WHOLE = /^([a-z][a-z0-9+.-]*:)\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^:/?#]*)(?::(\d*))?([^?#]*)(\?[^#]*)?(#.*)?$/i;

    const withoutDots = (path) => {
        const kept = [];
        const parts = path.split("/").slice(1);
        parts.forEach((part, index) => {
            const isLast = index === parts.length - 1;
            if (part === "..") kept.pop();
            if (part !== "." && part !== "..") kept.push(part);
            else if (isLast) kept.push("");
        });
        return `/${kept.join("/")}`;
    };

    define("URL", class URL {
        constructor(url, base) {
            let text = String(url).trim();
            let found = WHOLE.exec(text);
            if (found === null && base !== undefined) {
                const { protocol, origin, pathname, search } = new URL(base);
                if (text.startsWith("//")) text = protocol + text;
                else if (text.startsWith("/")) text = origin + text;
                else if (text.startsWith("?")) text = origin + pathname + text;
                else if (text.startsWith("#") || text === "") text = origin + pathname + search + text;
                else text = origin + pathname.replace(/[^/]*$/, "") + text;
                found = WHOLE.exec(text);
            }
            if (found === null) throw new TypeError(`Invalid URL: ${url}`);
            const [, protocol, username = "", password = "", host, port = "", path, search = "", hash = ""] = found;
            if (host === "") throw new TypeError(`Invalid URL: ${url}`);
            this.protocol = protocol.toLowerCase();
            this.username = username;
            this.password = password;
            this.hostname = host.toLowerCase();
            this.port = port === PORTS[this.protocol] ? "" : port;
            this.pathname = withoutDots(path === "" ? "/" : path);
            this.search = search === "?" ? "" : search;
            this.hash = hash === "#" ? "" : hash;
            this.searchParams = new URLSearchParams(this.search);
        }
        get host() {
            return this.port === "" ? this.hostname : `${this.hostname}:${this.port}`;
        }
        get origin() {
            return `${this.protocol}//${this.host}`;
        }
        get href() {
            const user = this.username === "" ? "" : `${this.username}${this.password === "" ? "" : `:${this.password}`}@`;
            const query = this.searchParams.toString();
            return `${this.protocol}//${user}${this.host}${this.pathname}${query === "" ? "" : `?${query}`}${this.hash}`;
        }
        toString() {
            return this.href;
        }
        toJSON() {
            return this.href;
        }
    });

    const clone = (value, seen) => {
        if (typeof value === "function" || typeof value === "symbol") {
            throw new TypeError(`${String(value).slice(0, 80)} could not be cloned`);
        }
        if (typeof value !== "object" || value === null) return value;
        if (seen.has(value)) return seen.get(value);
        const keep = (made) => {
            seen.set(value, made);
            return made;
        };
        if (value instanceof Date) return keep(new Date(value.getTime()));
        if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
        if (value instanceof ArrayBuffer) return keep(value.slice(0));
        if (ArrayBuffer.isView(value)) return keep(new value.constructor(clone(value.buffer, seen), value.byteOffset, value.length));
        if (value instanceof Map) {
            const made = keep(new Map());
            for (const [from, to] of value) made.set(clone(from, seen), clone(to, seen));
            return made;
        }
        if (value instanceof Set) {
            const made = keep(new Set());
            for (const item of value) made.add(clone(item, seen));
            return made;
        }
        if (value instanceof Error) {
            return keep(Object.assign(new Error(value.message), { name: value.name }));
        }
        const made = keep(Array.isArray(value) ? [] : {});
        for (const name of Object.keys(value)) made[name] = clone(value[name], seen);
        return made;
    };
    define("structuredClone", (value) => clone(value, new Map()));
})();
