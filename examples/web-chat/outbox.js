// What a visitor said and the host has not taken yet. It is kept in the browser until the host has
// answered for it, so that nothing that looks sent is lost: not by a reload, nor while the host is
// away. The host takes the same id once, so sending again is safe.

/** Milliseconds between two tries: at first, and at most. */
const PAUSE_MS = 1000;
const PAUSE_MS_MAX = 30000;

/** A new id. `crypto.randomUUID` is there on pages with https only. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What becomes of something after a try that failed. */
export function fate(status) {
  const passes = [408, 409, 429].includes(status) || status >= 500;
  if (status === undefined || passes) return "later";
  return status === 401 ? "unknown" : "refused";
}

export class Outbox {
  /**
   * @param storage where it is kept, such as `localStorage`
   * @param key the name under which it is kept there
   * @param post sends one entry; its errors have a `status` if the host answered
   * @param on `changed()`, `taken(entry, answer)`, `failed(error, entry)`,
   *   `unknown(error)`, `wait(ms)`, `unkept()`
   */
  constructor(storage, key, post, on) {
    Object.assign(this, { storage, key, post, on, memory: [], isKept: true, isAtWork: false });
  }

  /** All entries in their order. Other tabs of the page change them too. */
  entries() {
    if (!this.isKept) return this.memory;
    try {
      const kept = JSON.parse(this.storage.getItem(this.key) ?? "[]");
      return Array.isArray(kept) ? kept : [];
    } catch {
      return this.memory;
    }
  }

  /** Keeps something and begins to send it. It is kept before anything is sent. */
  add(path, content) {
    const entry = { id: newId(), path, content, at: new Date().toISOString() };
    this.#keep([...this.entries(), entry]);
    this.work();
    return entry;
  }

  /** Sends something that was refused once more. */
  again(id) {
    this.#change(id, (entry) => ({ ...entry, refused: undefined }));
    this.work();
  }

  /** Drops something, and returns it. */
  drop(id) {
    const entry = this.entries().find((entry) => entry.id === id);
    this.#keep(this.entries().filter((entry) => entry.id !== id));
    return entry;
  }

  clear() {
    this.#keep([]);
  }

  /** Sends what is there, one after the other, until nothing is left but what was refused. */
  async work() {
    if (this.isAtWork) return;
    this.isAtWork = true;
    try {
      await this.#sendAll();
    } finally {
      this.isAtWork = false;
    }
  }

  async #sendAll() {
    let pause = PAUSE_MS;
    for (;;) {
      const entry = this.entries().find((entry) => entry.refused === undefined);
      if (!entry) return;
      try {
        const answer = await this.post(entry);
        pause = PAUSE_MS;
        this.on.taken(entry, answer);
        this.drop(entry.id);
        continue;
      } catch (error) {
        this.on.failed(error, entry);
        const what = fate(error.status);
        if (what === "refused") {
          this.#change(entry.id, (entry) => ({ ...entry, refused: error.status }));
          continue;
        }
        // Nobody heard it. The next visitor says it.
        if (what === "unknown") this.on.unknown(error);
        await this.on.wait(error.retryMs ?? pause);
      }
      pause = Math.min(2 * pause, PAUSE_MS_MAX);
    }
  }

  #change(id, change) {
    this.#keep(this.entries().map((entry) => (entry.id === id ? change(entry) : entry)));
  }

  #keep(entries) {
    this.memory = entries;
    try {
      this.storage.setItem(this.key, JSON.stringify(entries));
      this.isKept = true;
    } catch {
      // There is no room, or the browser keeps nothing.
      this.isKept = false;
      this.on.unkept();
    }
    this.on.changed();
  }
}
