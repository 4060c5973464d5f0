import FerryNetworking
import FerryPlatform
import Foundation

// Large objects, which are sent in parts and are visible when the last one is there.
extension ObjectStoreClient {
  /// Parts sent at once.
  private static let partsAtOnce = 4

  /// Stores a large file's content as an object. A failure leaves nothing.
  ///
  /// - Parameters:
  ///   - hashes: The SHA-256 of each part.
  ///   - partBytes: Bytes of a part; the last one may be smaller.
  func put(
    file path: String, size: Int64, parts hashes: [[UInt8]], of partBytes: Int64, as key: String
  ) async throws(ObjectStoreError) {
    let begun = try await send(ObjectStoreRequest(.post, key, query: [("uploads", "")]))
    guard let upload = ObjectStoreXML(begun.body)?.text(of: "UploadId"), !upload.isEmpty else {
      throw .malformed("the store did not begin an upload in parts")
    }
    do {
      let parts = Array(hashes.enumerated())
      let tags = try await concurrently(parts, Self.partsAtOnce) {
        (part) async throws(ObjectStoreError) in
        let start = Int64(part.offset) * partBytes
        let range = Int(start)..<Int(min(size, start + partBytes))
        var request = ObjectStoreRequest(
          .put, key, query: [("partNumber", String(part.offset + 1)), ("uploadId", upload)])
        request.payload = .file(
          FileSlice(path: path, range: range), hash: part.element, count: Int64(range.count))
        guard let tag = try await self.send(request).headers["ETag"] else {
          throw ObjectStoreError.malformed("the store has no tag for a part")
        }
        return tag
      }
      try await complete(upload, of: key, tags)
    } catch {
      // The answer to the last request may be lost, and the object whole.
      if try await self.isWhole(key, size, after: error) { return }
      // Also if this task was cancelled.
      await Task { try? await self.abort(upload, of: key) }.value
      throw error
    }
  }

  private func isWhole(
    _ key: String, _ size: Int64, after error: ObjectStoreError
  ) async throws(ObjectStoreError) -> Bool {
    guard case .refused(status: 404, _, _) = error else { return false }
    return try await self.size(of: key) == size
  }

  private func complete(
    _ upload: String, of key: String, _ tags: [String]
  ) async throws(ObjectStoreError) {
    var document = "<CompleteMultipartUpload>"
    for (index, tag) in tags.enumerated() {
      let text = tag.replacing(bytes: "&", with: "&amp;").replacing(bytes: "<", with: "&lt;")
      document += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(text)</ETag></Part>"
    }
    var request = ObjectStoreRequest(.post, key, query: [("uploadId", upload)])
    request.payload = .bytes(Array((document + "</CompleteMultipartUpload>").utf8))
    request.answerName = "CompleteMultipartUploadResult"
    _ = try await send(request)
  }

  /// Removes the parts of an upload.
  func abort(_ upload: String, of key: String) async throws(ObjectStoreError) {
    do {
      _ = try await send(ObjectStoreRequest(.delete, key, query: [("uploadId", upload)]))
    } catch .refused(status: 404, _, _) {
      // It was completed, or removed already.
    }
  }

  /// Returns unfinished uploads below the prefix, a thousand at most.
  func unfinished() async throws(ObjectStoreError) -> [(
    upload: String, key: String, begunAt: Int64
  )] {
    let request = ObjectStoreRequest(
      .get, query: [("uploads", ""), ("prefix", settings.prefix)])
    let answer: TransportResponse
    do { answer = try await send(request) } catch .refused(status: 501, _, _) { return [] }
    guard let list = ObjectStoreXML(answer.body) else {
      throw .malformed("the store's list of uploads cannot be read")
    }
    return list.children.filter { $0.name == "Upload" }.compactMap { item in
      guard let upload = item.text(of: "UploadId"), let key = item.text(of: "Key"),
        let begunAt = item.text(of: "Initiated").flatMap(Self.seconds)
      else { return nil }
      return (upload, key, begunAt)
    }
  }
}

/// Runs `body` for all items, some at once, and returns the results in the order of the items. The
/// first error ends all.
func concurrently<Item: Sendable, Result: Sendable, Failure: Error>(
  _ items: [Item], _ most: Int,
  _ body: @escaping @Sendable (Item) async throws(Failure) -> Result
) async throws(Failure) -> [Result] {
  let outcome = await withTaskGroup(of: (Int, Swift.Result<Result, Failure>).self) { group in
    var results = [Result?](repeating: nil, count: items.count)
    var failure: Failure?
    func add(_ outcome: (Int, Swift.Result<Result, Failure>)) {
      switch outcome.1 {
      case .success(let result): results[outcome.0] = result
      case .failure(let error):
        if failure == nil { failure = error }
        group.cancelAll()
      }
    }
    for (index, item) in items.enumerated() {
      if index >= most, let outcome = await group.next() { add(outcome) }
      if failure != nil { break }
      group.addTask {
        do throws(Failure) {
          return (index, .success(try await body(item)))
        } catch {
          return (index, .failure(error))
        }
      }
    }
    while let outcome = await group.next() { add(outcome) }
    return failure.map { Swift.Result<[Result], Failure>.failure($0) }
      ?? .success(results.compactMap(\.self))
  }
  return try outcome.get()
}
