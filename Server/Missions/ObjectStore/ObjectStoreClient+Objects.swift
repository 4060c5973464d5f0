import FerryCryptography
import FerryNetworking
import FerryPlatform
import Foundation

// Objects of the bucket, by their whole keys.
extension ObjectStoreClient {
  /// Returns the size of an object; `nil` if there is none.
  func size(of key: String) async throws(ObjectStoreError) -> Int64? {
    guard
      let answer = try await found({ () async throws(ObjectStoreError) in
        try await send(ObjectStoreRequest(.head, key))
      })
    else { return nil }
    guard let size = answer.headers["Content-Length"].flatMap({ Int64($0) }), size >= 0 else {
      throw .malformed("the store does not state the size of \(key)")
    }
    return size
  }

  /// Reads an object of no more than `limit` bytes; `nil` if there is none.
  func content(of key: String, limit: Int) async throws(ObjectStoreError) -> [UInt8]? {
    var request = ObjectStoreRequest(.get, key)
    // An error has a text.
    request.responseLimit = max(limit, 64 << 10)
    let bytes = try await found { () async throws(ObjectStoreError) in
      try await send(request).body
    }
    guard bytes?.count ?? 0 <= limit else {
      throw .malformed("\(key) has more than \(limit) bytes")
    }
    return bytes
  }

  /// Opens a range of an object of `size` bytes; `nil` if there is none with this size.
  func read(
    _ key: String, _ range: Range<Int64>, of size: Int64
  ) async throws(ObjectStoreError) -> TransportBody? {
    var request = ObjectStoreRequest(.get, key)
    let isWhole = range == 0..<size
    if !isWhole {
      request.headers.append(
        ("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    let answer: TransportStream?
    do {
      answer = try await found { () async throws(ObjectStoreError) in try await stream(request) }
    } catch .refused(status: 416, _, _) {
      return nil
    }
    guard let answer else { return nil }
    if isWhole {
      let length = answer.headers["Content-Length"].flatMap { Int64($0) }
      return answer.status == 200 && length == size ? answer.body : nil
    }
    let expected = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    return answer.status == 206 && answer.headers["Content-Range"] == expected ? answer.body : nil
  }

  /// Removes an object, if it is there.
  func remove(_ key: String) async throws(ObjectStoreError) {
    _ = try await found { () async throws(ObjectStoreError) in
      try await send(ObjectStoreRequest(.delete, key))
    }
  }

  /// Stores bytes as an object.
  func put(_ bytes: [UInt8], as key: String) async throws(ObjectStoreError) {
    try await put(.bytes(bytes), hash: SHA256.digest(of: bytes), as: key)
  }

  /// Stores a file's content as an object. The store checks the hash.
  func put(
    file path: String, size: Int64, hash: [UInt8], as key: String
  ) async throws(ObjectStoreError) {
    let slice = FileSlice(path: path, range: 0..<Int(size))
    try await put(.file(slice, hash: hash, count: size), hash: hash, as: key)
  }

  private func put(
    _ payload: ObjectStoreRequest.Payload, hash: [UInt8], as key: String
  ) async throws(ObjectStoreError) {
    var request = ObjectStoreRequest(.put, key)
    request.payload = payload
    request.headers = [("x-amz-checksum-sha256", Data(hash).base64EncodedString())]
    _ = try await send(request)
  }

  /// Returns `nil` if the object is not there.
  private func found<Answer>(
    _ body: () async throws(ObjectStoreError) -> Answer
  ) async throws(ObjectStoreError) -> Answer? {
    do {
      return try await body()
    } catch .refused(status: 404, let code, _) where code != "NoSuchBucket" {
      return nil
    }
  }

  // MARK: Lists

  /// An object of a list.
  struct Entry: Sendable, Equatable {
    var key: String
    var size: Int64
    /// Seconds since 1970.
    var modifiedAt: Int64
  }

  /// Returns objects below the prefix in the order of their keys, from the one after `key` on. Also
  /// returns the key at which the list continues; `nil` at the end.
  ///
  /// - Parameter beginning: the beginning of the names below the prefix.
  func list(
    below beginning: String = "", after key: String?, limit: Int = 1_000
  ) async throws(ObjectStoreError) -> (entries: [Entry], next: String?) {
    var query = [
      (name: "list-type", value: "2"), ("max-keys", String(limit)), ("encoding-type", "url"),
      ("prefix", settings.prefix + beginning),
    ]
    if let key { query.append(("start-after", key)) }
    let answer = try await send(ObjectStoreRequest(.get, query: query))
    guard let list = ObjectStoreXML(answer.body), list.name == "ListBucketResult" else {
      throw .malformed("the store's list cannot be read: is the endpoint an S3-compatible store?")
    }
    var entries: [Entry] = []
    var last = key
    for item in list.children where item.name == "Contents" {
      guard let text = item.text(of: "Key"),
        let size = item.text(of: "Size").flatMap({ Int64($0) }),
        let modified = item.text(of: "LastModified").flatMap(Self.seconds)
      else { throw .malformed("an entry of the store's list cannot be read") }
      let isEncoded = list.text(of: "EncodingType") == "url"
      let key =
        isEncoded ? text.replacing(bytes: "+", with: " ").removingPercentEncoding ?? text : text
      entries.append(Entry(key: key, size: size, modifiedAt: modified))
      if last.map({ $0.utf8.lexicographicallyPrecedes(key.utf8) }) ?? true { last = key }
    }
    guard list.text(of: "IsTruncated") == "true" else { return (entries, nil) }
    // A list without progress would be read for ever.
    guard let last, last != key else { throw .malformed("the store's list does not go on") }
    return (entries, last)
  }

  /// Reads a time such as `2026-11-26T13:10:01.000Z`.
  static func seconds(_ text: String) -> Int64? {
    let pattern = /([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?Z/
    guard let match = text.wholeMatch(of: pattern) else { return nil }
    var parts = tm()
    parts.tm_year = (Int32(match.1) ?? 0) - 1_900
    parts.tm_mon = (Int32(match.2) ?? 0) - 1
    parts.tm_mday = Int32(match.3) ?? 0
    parts.tm_hour = Int32(match.4) ?? 0
    parts.tm_min = Int32(match.5) ?? 0
    parts.tm_sec = Int32(match.6) ?? 0
    return Int64(timegm(&parts))
  }
}
