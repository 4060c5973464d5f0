/// A form with fields and files, sent as `multipart/form-data` (RFC 7578).
///
/// Files are read while they are sent and never as a whole in memory. The request has a
/// `Content-Length`, and can be sent again.
///
/// ```swift
/// var form = MultipartForm()
/// form.add("title", "Summer 2026")
/// form.addFile("photo", path: "beach.jpg", contentType: "image/jpeg")
/// form.addFile("photo", path: "film.mp4", contentType: "video/mp4")
/// try await client.send(NetworkRequest("/albums", method: .post, body: .form(form)))
/// ```
public struct MultipartForm: Sendable, Equatable {
  /// One field or file of a form.
  public struct Part: Sendable, Equatable {
    /// The name of the field; several parts may have one name.
    public var name: String
    /// The name of the file; `nil` for a field.
    public var fileName: String?
    /// The media type; `nil` sends none.
    public var contentType: String?
    /// The content.
    public var content: BodyPart

    /// Creates a part.
    public init(
      name: String, fileName: String? = nil, contentType: String? = nil, content: BodyPart
    ) {
      self.name = name
      self.fileName = fileName
      self.contentType = contentType
      self.content = content
    }
  }

  /// The parts in the order of travel.
  public var parts: [Part]

  /// Creates a form, empty at first.
  public init(_ parts: [Part] = []) { self.parts = parts }

  /// Adds a field with a text.
  public mutating func add(_ name: String, _ value: String) {
    parts.append(Part(name: name, content: .bytes(Array(value.utf8))))
  }

  /// Adds the file at `path`; the file's name is the last part of the path, unless `fileName` is
  /// another one.
  public mutating func addFile(
    _ name: String, path: String, fileName: String? = nil,
    contentType: String = "application/octet-stream"
  ) {
    let own = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) }
    parts.append(
      Part(
        name: name, fileName: fileName ?? own ?? "", contentType: contentType,
        content: .file(FileSlice(path: path))))
  }

  /// Adds these bytes as a file.
  public mutating func addFile(
    _ name: String, bytes: [UInt8], fileName: String,
    contentType: String = "application/octet-stream"
  ) {
    parts.append(
      Part(name: name, fileName: fileName, contentType: contentType, content: .bytes(bytes)))
  }
}
