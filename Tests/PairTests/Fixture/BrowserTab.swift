import FerryTestSupport
import Foundation
import Synchronization

/// A tab of a real browser without a window, in real time.
///
/// The test drives the browser through its own pipe (the DevTools protocol), so a page's policy
/// does not matter: nothing is added to the page.
final class BrowserTab: CapturedProcess {
  /// A message of the browser that answers no call.
  struct Event: Sendable {
    let method: String
    let json: Data

    var parameters: [String: Any] {
      let message = try? JSONSerialization.jsonObject(with: json) as? [String: Any]
      return message?["params"] as? [String: Any] ?? [:]
    }
  }

  private struct State {
    /// Answers not yet read by a call.
    var answers: [Int: Data] = [:]
    var events: [Event] = []
    var lastCall = 0
    var session: String?
  }

  private let directory: TemporaryDirectory
  private let process: ChildProcess
  private let input: FileHandle
  private let output: FileHandle
  private let state = Mutex(State())

  private init() throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    let paths = ["in", "out"].map { directory.file($0).path }
    for path in paths where mkfifo(path, 0o600) != 0 {
      throw TestSupportError("cannot make the pipe \(path)")
    }
    // Open for both ways, so neither side waits for the other.
    let ends = paths.map { Foundation.open($0, O_RDWR | O_CLOEXEC) }
    input = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    output = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    let options =
      (geteuid() == 0 ? ["--no-sandbox"] : []) + [
        "--headless", "--disable-gpu",
        "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--no-proxy-server",
        "--remote-debugging-pipe",
        "--user-data-dir=\(directory.file("profile").path)",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank",
      ]
    process = try ChildProcess(
      URL(filePath: "/bin/sh"),
      ["-c", #"in=$1 out=$2; shift 2; exec "$@" 3<"$in" 4>"$out""#, "browser"] + paths
        + [HeadlessBrowser.find().path] + options,
      environment: HeadlessBrowser.environment(in: directory.url))
  }

  /// Opens a tab. Throws an error that explains how to install a browser if there is none.
  static func open() async throws -> BrowserTab {
    let tab = try BrowserTab()
    Thread.detachNewThread { [weak tab, output = tab.output] in
      var rest = Data()
      while case let bytes = output.availableData, !bytes.isEmpty, let tab {
        rest.append(bytes)
        while let end = rest.firstIndex(of: 0) {
          tab.receive(Data(rest[rest.startIndex..<end]))
          rest = Data(rest[(end + 1)...])
        }
      }
    }
    let target = try await tab.call("Target.createTarget", ["url": "about:blank"])
    let attached = try await tab.call(
      "Target.attachToTarget", ["targetId": target["targetId"] ?? "", "flatten": true])
    tab.state.withLock { $0.session = attached["sessionId"] as? String }
    for domain in ["Page", "Runtime", "Network", "Log", "DOM"] {
      _ = try await tab.call("\(domain).enable")
    }
    return tab
  }

  deinit {
    process.send(SIGKILL)
    // Wakes the reading thread.
    output.write(Data([0]))
  }

  var endReport: String? { process.endReport }

  // MARK: The page

  /// Opens an address.
  func go(to address: String) async throws { _ = try await call("Page.navigate", ["url": address]) }

  /// Returns the result of an expression in the page. Promises are awaited.
  func value(_ expression: String) async throws -> Any {
    let answer = try await call(
      "Runtime.evaluate",
      ["expression": expression, "awaitPromise": true, "returnByValue": true])
    if let details = answer["exceptionDetails"] {
      throw TestSupportError("\(expression) failed: \(details)")
    }
    return (answer["result"] as? [String: Any])?["value"] ?? NSNull()
  }

  /// Returns a text of the page.
  func text(_ expression: String) async throws -> String {
    "\(try await value("String(\(expression))"))"
  }

  /// Waits until an expression is true.
  func until(_ expression: String) async throws {
    try await eventually("\(expression) in the browser", from: process) {
      (try? await self.value("Boolean(\(expression))")) as? Bool == true
    }
  }

  /// Presses a key, as a person does.
  func press(_ key: String, code: Int, text: String? = nil) async throws {
    for type in ["keyDown", "keyUp"] {
      var event: [String: Any] = [
        "type": type, "key": key, "code": key, "windowsVirtualKeyCode": code,
      ]
      if type == "keyDown", let text { event["text"] = text }
      _ = try await call("Input.dispatchKeyEvent", event)
    }
  }

  /// Drags a file or a folder of this machine onto an element, and drops it there.
  func drop(_ path: String, on selector: String) async throws {
    let place = try await value(
      """
      (() => {
        const element = document.querySelector(\(Self.quoted(selector)));
        element.scrollIntoView({ block: "center", behavior: "instant" });
        const { x, y, width, height } = element.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
      })()
      """)
    guard let place = place as? [Double], place.count == 2 else {
      throw TestSupportError("there is no \(selector) to drop on")
    }
    for type in ["dragEnter", "dragOver", "drop"] {
      _ = try await call(
        "Input.dispatchDragEvent",
        [
          "type": type, "x": place[0], "y": place[1],
          "data": ["items": [Any](), "files": [path], "dragOperationsMask": 1] as [String: Any],
        ])
    }
  }

  /// Gives the page another width and colours.
  func show(width: Int, height: Int = 844, isDark: Bool = false) async throws {
    _ = try await call(
      "Emulation.setDeviceMetricsOverride",
      ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500])
    let scheme = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
    _ = try await call("Emulation.setEmulatedMedia", ["features": [scheme]])
  }

  /// Returns a picture of the whole page as PNG.
  func picture() async throws -> Data {
    let answer = try await call("Page.captureScreenshot", ["captureBeyondViewport": true])
    return Data(base64Encoded: answer["data"] as? String ?? "") ?? Data()
  }

  /// The requests of the page so far: methods and addresses.
  var requests: [(method: String, url: String)] {
    state.withLock { $0.events }.filter { $0.method == "Network.requestWillBeSent" }
      .compactMap { event in
        guard let request = event.parameters["request"] as? [String: Any] else { return nil }
        return (request["method"] as? String ?? "", request["url"] as? String ?? "")
      }
  }

  /// The texts logged by scripts, in order.
  var logged: [String] {
    state.withLock { $0.events }.filter { $0.method == "Runtime.consoleAPICalled" }.map { event in
      let values = event.parameters["args"] as? [[String: Any]] ?? []
      return values.map { "\($0["value"] ?? $0["description"] ?? "")" }.joined(separator: " ")
    }
  }

  /// Errors of scripts, and everything refused by the page's policy.
  var faults: [String] {
    state.withLock { $0.events }.compactMap { event in
      switch event.method {
      case "Runtime.exceptionThrown": return "\(event.parameters)"
      case "Log.entryAdded":
        let entry = event.parameters["entry"] as? [String: Any]
        return entry?["source"] as? String == "security" ? "\(entry ?? [:])" : nil
      default: return nil
      }
    }
  }

  // MARK: Messages

  /// Calls a method of the browser, and returns the result.
  @discardableResult
  func call(_ method: String, _ parameters: [String: Any] = [:]) async throws -> [String: Any] {
    let (number, session) = state.withLock { state in
      state.lastCall += 1
      return (state.lastCall, state.session)
    }
    var message: [String: Any] = ["id": number, "method": method, "params": parameters]
    if let session { message["sessionId"] = session }
    var bytes = try JSONSerialization.data(withJSONObject: message)
    bytes.append(0)
    input.write(bytes)
    let data = try await eventually("the browser's answer to \(method)", from: process) {
      state.withLock { $0.answers.removeValue(forKey: number) }
    }
    let answer = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    if let error = answer["error"] { throw TestSupportError("\(method): \(error)") }
    return answer["result"] as? [String: Any] ?? [:]
  }

  private func receive(_ json: Data) {
    guard let message = try? JSONSerialization.jsonObject(with: json) as? [String: Any] else {
      return
    }
    if let number = message["id"] as? Int {
      state.withLock { $0.answers[number] = json }
    } else if let method = message["method"] as? String {
      state.withLock { $0.events.append(Event(method: method, json: json)) }
    }
  }
}
