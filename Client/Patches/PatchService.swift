import Foundation

/// A function of the app that patches of a behaviour may call, if the app grants it to the
/// behaviour and the patch declares it.
///
/// ```swift
/// let stock = PatchService("stock.count") { (product: String) in
///   try await warehouse.count(of: product)
/// }
/// ```
///
/// A script calls it with `await call("stock.count", "P-17")`. Errors reach the script as errors
/// with the description of this one. If a patch fails after such a call, the native code runs, and
/// may do the same again: grant functions that only read, or that can be repeated.
public struct PatchService: Sendable {
  /// 1 to 128 characters of `A–Z a–z 0–9 . _ + -`, the first a letter or digit.
  public let name: String
  let body: @Sendable ([UInt8]) async throws -> [UInt8]

  /// Creates a service with JSON arguments and results. Dates are milliseconds since 1970.
  public init<Query: Decodable & Sendable, Answer: Encodable & Sendable>(
    _ name: String, _ body: @escaping @Sendable (Query) async throws -> Answer
  ) {
    self.name = name
    self.body = { arguments in
      try PatchCoding.encode(try await body(try PatchCoding.decode(Query.self, arguments)))
    }
  }
}

/// How values of the app become values of a script.
enum PatchCoding {
  static func encode(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .millisecondsSince1970
    encoder.outputFormatting = .withoutEscapingSlashes
    return Array(try encoder.encode(value))
  }

  static func decode<Value: Decodable>(_ type: Value.Type, _ json: [UInt8]) throws -> Value {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .millisecondsSince1970
    return try decoder.decode(type, from: Data(json))
  }
}
