import FerryProtocol

/// One call of a patch in a host: the conversation with the process, and the limits; pure.
struct PatchCall: Sendable {
  enum Event: Sendable {
    /// The host wrote these bytes.
    case received([UInt8])
    /// A service answered a call with JSON, or failed with a text.
    case answered(Int64, Result<[UInt8], ServiceFailure>)
    /// The host ended with this status.
    case ended(HostEnd)
    case deadline
  }

  enum Effect: Equatable, Sendable {
    /// Write these bytes to the host.
    case send([UInt8])
    /// Call a service, and report the answer under the number.
    case call(Int64, service: String, arguments: [UInt8])
    /// Stop the host. Nothing comes after this.
    case finish(Result<[UInt8], PatchFailure>)
  }

  struct ServiceFailure: Error, Equatable, Sendable {
    let text: String
  }

  /// How a host ended.
  enum HostEnd: Equatable, Sendable {
    case exited(Int32)
    case killed(Int32)
  }

  private let services: Set<String>
  private let limits: PatchLimits
  private var receivedBytes = 0
  private var line: [UInt8] = []
  private var calls = 0
  private var unanswered: Set<Int64> = []
  private(set) var isFinished = false

  /// - Parameter services: The services declared by the patch and granted by the app.
  init(services: Set<String>, limits: PatchLimits) {
    self.services = services
    self.limits = limits
  }

  /// Returns the two lines at the beginning of a conversation.
  static func opening(script: String, input: [UInt8]) -> [UInt8] {
    var json = JSONWriter(capacity: script.utf8.count + input.count + 64)
    json.string(script)
    json.raw("\n")
    json.raw(input)
    json.raw("\n")
    return json.finish()
  }

  /// Handles an event; after the last effect, all events are ignored.
  mutating func handle(_ event: Event) -> [Effect] {
    if isFinished { return [] }
    switch event {
    case .received(let bytes): return receive(bytes)
    case .answered(let number, let answer): return forward(answer, to: number)
    case .ended(let end): return [finish(.failure(Self.failure(of: end)))]
    case .deadline: return [finish(.failure(.timeUsedUp))]
    }
  }

  private mutating func receive(_ bytes: [UInt8]) -> [Effect] {
    receivedBytes += bytes.count
    guard receivedBytes <= limits.outputBytes else { return [finish(.failure(.outputTooLarge))] }
    var effects: [Effect] = []
    for part in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      if part.offset > 0 {
        effects += read(line)
        line = []
        if isFinished { return effects }
      }
      line += part.element
    }
    return effects
  }

  private mutating func read(_ line: [UInt8]) -> [Effect] {
    do throws(MalformedMessage) {
      switch try PatchLine(decoding: line) {
      case .call(let number, let service, let arguments):
        return call(service, arguments, number)
      case .result(let json): return [finish(.success(json))]
      case .thrown(let text): return [finish(.failure(.threw(Self.clipped(text))))]
      case .refused(let text): return [finish(.failure(.notConfined(Self.clipped(text))))]
      }
    } catch {
      return [finish(.failure(.hostEnded("it wrote a line that is none: \(error)")))]
    }
  }

  private mutating func call(
    _ service: String, _ arguments: [UInt8], _ number: Int64
  ) -> [Effect] {
    calls += 1
    guard calls <= limits.serviceCalls else { return [finish(.failure(.tooManyServiceCalls))] }
    guard unanswered.insert(number).inserted else {
      return [finish(.failure(.hostEnded("it gave two calls one number")))]
    }
    guard services.contains(service) else {
      let name = Self.clipped(service)
      return forward(.failure(ServiceFailure(text: "service \(name) is not granted")), to: number)
    }
    return [.call(number, service: service, arguments: arguments)]
  }

  private mutating func forward(
    _ answer: Result<[UInt8], ServiceFailure>, to number: Int64
  ) -> [Effect] {
    guard unanswered.remove(number) != nil else { return [] }
    var json = JSONWriter()
    json.array { json in
      json.element()
      json.number(number)
      json.element()
      switch Self.checked(answer) {
      case .success(let value):
        json.bool(true)
        json.element()
        json.raw(value)
      case .failure(let failure):
        json.bool(false)
        json.element()
        json.string(failure.text)
      }
    }
    json.raw("\n")
    return [.send(json.finish())]
  }

  /// Checks an answer: it must be exact for the script, as an input must be.
  private static func checked(
    _ answer: Result<[UInt8], ServiceFailure>
  ) -> Result<[UInt8], ServiceFailure> {
    answer.flatMap { json in
      PatchJSON.fault(inInput: json).map { .failure(ServiceFailure(text: $0)) } ?? .success(json)
    }
  }

  private mutating func finish(_ result: Result<[UInt8], PatchFailure>) -> Effect {
    isFinished = true
    return .finish(result)
  }

  /// Returns the failure for a process's end. Exit codes are those of Client/PatchHost/confine.h.
  private static func failure(of end: HostEnd) -> PatchFailure {
    switch end {
    case .exited(3): .memoryUsedUp
    case .exited(4): .timeUsedUp
    case .exited(5): .notConfined("the host gave no reason")
    case .exited(127): .hostMissing("the program could not be loaded")
    case .exited(let code): .hostEnded("exit code \(code)")
    case .killed(let signal): .hostEnded("signal \(signal)")
    }
  }

  /// Texts of a script are for logs: they are short and have no control characters.
  private static func clipped(_ text: String) -> String {
    var clipped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars.prefix(500) {
      let isPlain = scalar.value >= 0x20 && !(0x7F...0x9F ~= scalar.value)
      clipped.append(isPlain ? scalar : " ")
    }
    return String(clipped)
  }
}
