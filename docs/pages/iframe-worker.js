// Search needs a worker, and a browser starts none for a page that is read from a folder (file:). There, the worker's
// script runs in a hidden frame instead. Messages are copied and arrive later, as a worker's do.
if (location.protocol === "file:")
    window.Worker = class {
        #frame = document.createElement("iframe");
        #waiting = [];

        constructor(url) {
            this.#frame.hidden = true;
            document.head.append(this.#frame);
            const inside = this.#frame.contentWindow;
            const script = inside.document.createElement("script");
            inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
            script.src = new URL(url, location.href);
            script.onload = () => this.#waiting.splice(0).forEach((data) => this.postMessage(data));
            script.onerror = () => this.onerror?.(new Event("error"));
            inside.document.head.append(script);
        }

        postMessage(data) {
            const inside = this.#frame.contentWindow;
            if (inside?.onmessage) setTimeout(() => inside.onmessage({ data: inside.structuredClone(data) }));
            else this.#waiting.push(data);
        }

        terminate() {
            this.#frame.remove();
        }
    };
