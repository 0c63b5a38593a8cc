// Browsers that playwright does not drive, by their WebDriver. Pages have those of playwright's calls that tests need.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { after } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Builder, By } from "selenium-webdriver";
import { Options, ServiceBuilder } from "selenium-webdriver/firefox.js";

/** The first of these programs that is there. */
export function found(...names) {
  const folders = process.env.PATH.split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

/** What a variable names, else what is on the path: selenium would fetch what it is not told. */
function named(variable, ...names) {
  const path = process.env[variable] ?? found(...names);
  if (!path) throw new Error(`there is no ${names[0]}; name it in ${variable}, or run cargo xtask setup firefox`);
  return path;
}

/** Firefox until the tests are over: `$FIREFOX` with `$GECKODRIVER`, or those on the path. */
export async function firefox() {
  const options = new Options().addArguments("-headless").setBinary(named("FIREFOX", "firefox", "firefox-esr"));
  const service = new ServiceBuilder(named("GECKODRIVER", "geckodriver"));
  return page(await new Builder().forBrowser("firefox").setFirefoxOptions(options).setFirefoxService(service).build());
}

/** WebKitGTK's driver until the tests are over, on a screen that nobody sees where there is none. */
export async function webkit() {
  const port = await freePort();
  const driver = ["WebKitWebDriver", `--port=${port}`];
  const [command, ...args] = process.env.DISPLAY ? driver : ["xvfb-run", "--auto-servernum", ...driver];
  const started = spawn(command, args, { detached: true, stdio: "ignore" });
  const end = () => process.kill(-started.pid);
  const url = `http://127.0.0.1:${port}`;
  for (let turn = 0; turn < 100 && !(await fetch(`${url}/status`).catch(() => undefined)); turn++) await pause(100);
  const options = { args: ["--automation"] };
  const builder = new Builder().usingServer(url).withCapabilities({ browserName: "MiniBrowser", "webkitgtk:browserOptions": options });
  try {
    return await page(await builder.build(), end);
  } catch (cause) {
    end();
    throw cause;
  }
}

async function page(driver, end = () => {}) {
  after(() => driver.quit().finally(end));
  await driver.manage().setTimeouts({ script: 60_000 });
  return tab(driver, await driver.getWindowHandle());
}

/** One of a browser's tabs. The driver looks at one at a time. */
function tab(driver, handle) {
  const look = () => driver.switchTo().window(handle);
  const find = async (selector) => {
    await look();
    return driver.findElement(By.css(selector));
  };
  const page = {
    async goto(address) {
      await look();
      await driver.get(address);
    },
    /** As a person does it: what the driver calls refresh goes past Firefox's service workers. */
    async reload() {
      await page.evaluate(() => {
        document.documentElement.dataset.before = "";
        setTimeout(() => location.reload());
      });
      await page.waitForFunction(() => !("before" in document.documentElement.dataset) && document.readyState === "complete");
    },
    /** What is drawn anew between being found and being clicked is found again. */
    click: async (selector) => {
      for (;;) {
        try {
          return await (await find(selector)).click();
        } catch (failure) {
          if (failure.name !== "StaleElementReferenceError") throw failure;
        }
      }
    },
    /** What `selector` names holds `text` then, typed as a person would. */
    async fill(selector, text) {
      const field = await find(selector);
      await field.clear();
      await field.sendKeys(text);
    },
    setViewportSize: ({ width, height }) => driver.manage().window().setRect({ width, height }),
    /** A picture of the whole page, as PNG: Firefox alone takes one. */
    async screenshot({ path }) {
      await look();
      writeFileSync(path, await driver.takeFullPageScreenshot(), "base64");
    },
    /** What a function gives in the page. */
    async evaluate(call, argument) {
      await look();
      const script = `const [argument, done] = arguments;
        (async () => (${call})(argument))().then((value) => done({ value }), (error) => done({ error: String(error) }));`;
      const { value, error } = await driver.executeAsyncScript(script, argument);
      if (error !== undefined) throw new Error(error);
      return value;
    },
    /** Waits until a function is true in the page, which may open itself again meanwhile. */
    async waitForFunction(call, argument) {
      // A document that goes takes the call with it; what else is wrong is wrong until the time is over.
      let problem;
      const isTrue = () => page.evaluate(call, argument).catch((error) => void (problem = error));
      await driver.wait(isTrue, 60_000, () => `${call}: ${problem ?? "was never true"}`, 50);
    },
    /** Another tab of the same visitor. */
    context: () => ({
      async newPage() {
        await driver.switchTo().newWindow("tab");
        return tab(driver, await driver.getWindowHandle());
      },
    }),
    async close() {
      await look();
      await driver.close();
    },
  };
  return page;
}

/** A port that nobody listens at. */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
