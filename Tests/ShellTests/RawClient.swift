import FerryTestSupport
import Foundation

/// A client that sends any bytes, as an attacker would.
struct RawClient: Sendable {
  struct Answer: Sendable {
    var status = 0
    var fields: [String: String] = [:]
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }
    /// The members of an object in JSON.
    func object() throws -> [String: Any] {
      try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] ?? [:]
    }
    /// The code of a failed call.
    func code() throws -> String? { try (object()["error"] as? [String: Any])?["code"] as? String }
  }

  let port: UInt16

  /// Sends bytes, and returns everything received until the other side ends the connection.
  func exchange(_ bytes: [UInt8]) async throws -> Answer {
    let port = port
    return try await Self.blocking {
      let socket = try LoopbackSocket.connect(to: port)
      defer { close(socket) }
      _ = LoopbackSocket.write(socket, bytes[...])
      return Self.parse(Self.readAll(socket))
    }
  }

  /// Runs blocking calls on a thread of their own: the shell's handlers need those of the pool.
  static func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      Thread { continuation.resume(with: Result(catching: body)) }.start()
    }
  }

  static func readAll(_ socket: Int32) -> [UInt8] {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let bytes = LoopbackSocket.read(socket, &buffer)
      if bytes.isEmpty { return all }
      all += bytes
    }
  }

  private static func parse(_ bytes: [UInt8]) -> Answer {
    var answer = Answer()
    guard let end = Data(bytes).range(of: Data("\r\n\r\n".utf8)) else { return answer }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
      .components(separatedBy: "\r\n")
    answer.status = Int(lines[0].split(separator: " ")[1]) ?? 0
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      answer.fields[line[..<colon].lowercased()] =
        line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    answer.body = Array(bytes[end.upperBound...])
    return answer
  }
}
