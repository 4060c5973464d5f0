import FerryProtocol

extension SpaceSchemaTests {
  /// A document with all rules, and a definition.
  static let document = """
    {"version":3,"minimumProtocol":1,"tables":{"notes":{},"tasks":{"policy":"server-wins",\
    "deletes":"edit-wins","write":"admin","columns":{"body":"text-merge",\
    "due":{"policy":"max","type":"integer","required":true},"email":{"type":"text","aliases":["mail","e"]},\
    "votes":"counter"},"unique":[["email"],["project","number"]],"clashes":[{"columns":["list"],"rule":"ask"}],\
    "aliases":["todos"],"definition":{"key":"id","columns":[{"name":"email","type":"text",\
    "required":true,"default":"a@b"},{"name":"list","type":"blob"}],"unique":[["email"]],"references":\
    [{"columns":["list"],"table":"lists","to":["code"],"onDelete":"cascade","onUpdate":"set-null"},\
    {"columns":["email"],"table":"users"}],"indexes":[["list","email"]]}}}}
    """

  /// The same as values.
  static let schema = SpaceSchema(
    version: 3,
    tables: [
      "notes": .standard,
      "tasks": TableRules(
        policy: .serverWins, deletes: .editWins, write: .admin,
        columns: [
          "votes": ColumnRules(policy: .counter), "body": ColumnRules(policy: .textMerge),
          "due": ColumnRules(policy: .max, type: .integer, isRequired: true),
          "email": ColumnRules(type: .text, aliases: ["mail", "e"]),
        ],
        unique: [["email"], ["project", "number"]], clashes: [DeclaredClash(["list"], .ask)],
        aliases: ["todos"],
        definition: DeclaredTable(
          key: "id",
          columns: [
            DeclaredColumn("email", .text, isRequired: true, defaultValue: "a@b"),
            DeclaredColumn("list", .blob),
          ], unique: [["email"]],
          references: [
            DeclaredReference(
              ["list"], to: "lists", ["code"], onDelete: .cascade, onUpdate: .setNull),
            DeclaredReference(["email"], to: "users"),
          ], indexes: [["list", "email"]])),
    ])
}
