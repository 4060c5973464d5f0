import FerryProtocol
import Foundation

/// A function of the app, replaceable by a patch until the next release.
///
/// Call it like a function. Without a patch, and whenever a patch fails, it runs the native code.
///
/// ```swift
/// let delivery = await behaviours.register("delivery.days") { (order: Order) in
///   order.isExpress ? 1 : 3
/// }
/// let days = try await delivery(order)
/// ```
public struct Behaviour<Input: Encodable & Sendable, Output: Decodable & Sendable>: Sendable {
  /// The behaviour's name for patches.
  public let name: String
  private let behaviours: Behaviours
  private let services: [String: PatchService]
  private let native: @Sendable (Input) async throws -> Output

  init(
    _ name: String, of behaviours: Behaviours, services: [String: PatchService],
    native: @escaping @Sendable (Input) async throws -> Output
  ) {
    self.name = name
    self.behaviours = behaviours
    self.services = services
    self.native = native
  }

  /// Runs the patch, or the native code.
  ///
  /// - Throws: the errors of the native code, and `CancellationError` if the task was cancelled
  ///   while a patch ran. A patch's errors only make the native code run.
  public func callAsFunction(_ input: Input) async throws -> Output {
    guard let patch = await behaviours.patch(for: name) else { return try await native(input) }
    switch await attempt(patch, input) {
    case .success(let output):
      await behaviours.recordSuccess(of: patch)
      return output
    case .failure(let reason):
      // If a patch's caller has gone, the patch is not to blame.
      try Task.checkCancellation()
      await behaviours.recordFailure(of: patch, reason)
      return try await native(input)
    }
  }

  private func attempt(
    _ patch: AcceptedPatch, _ input: Input
  ) async -> Result<Output, PatchFailure> {
    guard let runner = behaviours.runner else {
      return .failure(.hostMissing("the app named none"))
    }
    do throws(PatchFailure) {
      let request = PatchRequest(
        script: patch.document.script, input: try encoded(input),
        services: Set(patch.document.services), limits: behaviours.limits)
      let services = services
      let result = await runner.run(request) { name, arguments in
        guard let service = services[name] else { throw UnknownService(name: name) }
        return try await service.body(arguments)
      }
      return .success(try decoded(try result.get()))
    } catch {
      return .failure(error)
    }
  }

  private func encoded(_ input: Input) throws(PatchFailure) -> [UInt8] {
    let json: [UInt8]
    do {
      json = try PatchCoding.encode(input)
    } catch {
      throw .unsuitableInput(String(describing: error))
    }
    let limit = behaviours.limits.inputBytes
    guard json.count <= limit else {
      throw .unsuitableInput("it has \(json.count) bytes; \(limit) are allowed")
    }
    if let fault = PatchJSON.fault(inInput: json) { throw .unsuitableInput(fault) }
    return json
  }

  private func decoded(_ json: [UInt8]) throws(PatchFailure) -> Output {
    if let fault = PatchJSON.fault(inValue: json) { throw .wrongShape(fault) }
    do {
      return try PatchCoding.decode(Output.self, json)
    } catch {
      throw .wrongShape(String(String(describing: error).prefix(300)))
    }
  }
}

private struct UnknownService: Error, CustomStringConvertible {
  let name: String
  var description: String { "there is no service \(name)" }
}
