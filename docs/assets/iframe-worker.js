// Browsers refuse workers to pages that are files. The search of the docs site then runs in a hidden frame, which has the
// interface of a worker. extra.polyfills in mkdocs.yml loads this in place of the same from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.queue = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      // An empty frame has the origin of its page, which another file has not.
      document.documentElement.append(this.frame);
      this.start(new URL(url, location.href));
    }

    start(url) {
      const scope = this.frame.contentWindow;
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = scope.document.createElement("script");
          script.onload = resolve;
          script.onerror = reject;
          script.src = new URL(source, url);
          scope.document.head.append(script);
        });
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...sources) => Promise.all(sources.map(load));
      load(url).then(() => {
        this.scope = scope;
        this.queue.forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.scope) {
        this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }));
      } else {
        this.queue.push(data);
      }
    }

    terminate() {
      this.frame.remove();
    }
  };
}
