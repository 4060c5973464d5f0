import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Whole databases of usual companies, adopted as they are.
@Suite("Adopted databases", .hangLimit)
struct MirrorShapeTests {
  private typealias Company = MirrorAdoptionTests.Company

  /// Adopts all tables, lets a device and a program write, and compares everything.
  private func expectAdopted(
    _ schema: String, _ tables: [String], device write: String, program: String,
    eventually queries: [(sql: String, rows: [[String?]])], device reads: [(String, [[Value]])]
  ) async throws {
    let company = try await Company.make(schema)
    let stage = company.stage
    let made = try await stage.mirror(
      company.arguments(tables.flatMap { ["--table", $0] }))
    #expect(!made.output.contains("left out"), "\(made.output)")
    #expect(made.output.contains("unsent     0 rows"), "\(made.output)")
    try await company.join()
    for table in tables {
      let count = try stage.rows("SELECT count(*)::text FROM \(table)")
      #expect(
        try await company.device.rows("SELECT CAST(count(*) AS TEXT) FROM \(table)").map {
          $0.map { $0 == .null ? nil : $0 }
        } == count.map { $0.map { $0.map(Value.text) } }, "\(table)")
    }
    let run = try stage.run()
    try await company.device.write(write)
    try await company.device.exchangeAll()
    for query in queries { try await stage.eventuallyRows(query.sql, query.rows) }
    try stage.sql(program)
    for (query, rows) in reads {
      try await eventually("\(rows) from \(query)") {
        try await stage.quiet()
        try await company.device.exchangeAll()
        return try await company.device.rows(query) == rows
      }
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    let status = try await stage.mirror(["status", "crm"]).output
    #expect(status.contains("unsent     0 rows"), "\(status)")
  }

  @Test("a rental of films: enums, domains, arrays, words for a search, partitions, triggers")
  func films() async throws {
    try await expectAdopted(
      """
      CREATE TYPE film_rating AS ENUM ('ALL', 'TEEN', 'ADULT+');
      CREATE DOMAIN film_year AS integer CHECK (VALUE BETWEEN 1890 AND 2160);
      CREATE TABLE languages(language_id smallserial PRIMARY KEY, name character(20) NOT NULL,
        changed timestamptz NOT NULL DEFAULT now());
      CREATE TABLE people(person_id serial PRIMARY KEY, name varchar(45) NOT NULL);
      CREATE TABLE films(film_id serial PRIMARY KEY, title varchar(255) NOT NULL, description text,
        released film_year, language_id smallint NOT NULL REFERENCES languages ON UPDATE CASCADE,
        days smallint NOT NULL DEFAULT 3, rate numeric(4,2) NOT NULL DEFAULT 4.99, minutes smallint,
        cost numeric(5,2) NOT NULL DEFAULT 19.99, rating film_rating DEFAULT 'ALL',
        changed timestamptz NOT NULL DEFAULT now(), extras text[], words tsvector NOT NULL);
      CREATE INDEX films_words ON films USING gist (words);
      CREATE TRIGGER films_words BEFORE INSERT OR UPDATE ON films FOR EACH ROW EXECUTE FUNCTION
        tsvector_update_trigger('words', 'pg_catalog.english', 'title', 'description');
      CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.changed := clock_timestamp(); RETURN NEW; END $$;
      CREATE TRIGGER touch BEFORE UPDATE ON films FOR EACH ROW EXECUTE FUNCTION touch();
      CREATE TRIGGER touch BEFORE UPDATE ON languages FOR EACH ROW EXECUTE FUNCTION touch();
      CREATE TABLE casts(person_id smallint NOT NULL, film_id smallint NOT NULL,
        changed timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (person_id, film_id));
      CREATE TABLE payments(payment_id serial, film_id int NOT NULL REFERENCES films,
        amount numeric(5,2) NOT NULL, paid timestamptz NOT NULL, PRIMARY KEY (paid, payment_id))
        PARTITION BY RANGE (paid);
      CREATE TABLE payments_01 PARTITION OF payments
        FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-02-01 00:00+00');
      CREATE TABLE payments_rest PARTITION OF payments DEFAULT;
      INSERT INTO languages(name) VALUES ('English'), ('Deutsch');
      INSERT INTO people(name) SELECT 'Actor ' || i FROM generate_series(1, 20) i;
      INSERT INTO films(title, description, released, language_id, rating, extras)
        SELECT 'The cats ' || i, 'A story of cats and dogs', 1990 + i, 1,
          (ARRAY['ALL', 'TEEN', 'ADULT+']::film_rating[])[i % 3 + 1], '{Trailers,"Deleted Scenes"}'
        FROM generate_series(1, 30) i;
      INSERT INTO casts SELECT i, j FROM generate_series(1, 20) i, generate_series(i, i + 3) j;
      INSERT INTO payments(film_id, amount, paid) SELECT i, 2.99, '2026-01-20 10:00:00.5+00'::timestamptz
        + i * interval '1 day' FROM generate_series(1, 30) i
      """, ["languages", "people", "films", "casts", "payments"],
      device: """
        INSERT INTO films(film_id, title, language_id, released, extras, changed)
          VALUES (500, 'Dog', 2, 2025, '["a \\"b\\"",null]', '2026-01-01T00:00:00.000000Z');
        UPDATE films SET rating = 'ADULT+', rate = 0.5, title = 'Birds' WHERE film_id = 7;
        UPDATE languages SET name = 'Hindi' WHERE language_id = 2;
        INSERT INTO payments(paid, payment_id, film_id, amount)
          VALUES ('2026-01-03T00:00:00.000000Z', 900, 500, 7.5);
        DELETE FROM casts WHERE person_id = 3
        """,
      program: """
        UPDATE films SET released = 2000, extras = '{}', description = 'fish' WHERE film_id = 8;
        UPDATE payments SET paid = paid - interval '20 days' WHERE film_id = 30;
        INSERT INTO payments_01(film_id, amount, paid) VALUES (1, 1, '2026-01-31 00:00+00')
        """,
      eventually: [
        (
          "SELECT words::text, rating::text, extras::text, rate::text FROM films WHERE title = 'Dog'",
          [["'dog':1", "ALL", "{\"a \\\"b\\\"\",NULL}", "4.99"]]
        ),
        (
          "SELECT words::text, rating::text, rate::text FROM films WHERE film_id = 7",
          [["'bird':1 'cat':5 'dog':7 'stori':3", "ADULT+", "0.50"]]
        ),
        (
          "SELECT title FROM payments_01 JOIN films USING (film_id) WHERE payment_id = 900",
          [["Dog"]]
        ),
        ("SELECT count(*)::text FROM casts WHERE person_id = 3", [["0"]]),
      ],
      device: [
        (
          "SELECT released, extras, words, rating FROM films WHERE film_id IN (7, 8) ORDER BY film_id",
          [
            [
              1997, "[\"Trailers\",\"Deleted Scenes\"]", "'bird':1 'cat':5 'dog':7 'stori':3",
              "ADULT+",
            ],
            [2000, "[]", "'8':3 'cat':2 'fish':4", "ADULT+"],
          ]
        ), ("SELECT words FROM films WHERE film_id = 500", [["'dog':1"]]),
        (
          "SELECT paid FROM payments WHERE film_id = 30", [["2026-01-30T10:00:00.500000Z"]]
        ), ("SELECT count(*) FROM payments", [[32]]),
      ])
  }

  @Test("an importer: keys of a fixed length, keys of two columns, pictures, real prices")
  func orders() async throws {
    try await expectAdopted(
      """
      CREATE TABLE categories(category_id smallint PRIMARY KEY, name varchar(15) NOT NULL, picture bytea);
      CREATE TABLE customers(customer_id char(5) PRIMARY KEY, company varchar(40) NOT NULL,
        region varchar(15), code bpchar);
      CREATE TABLE products(product_id smallint PRIMARY KEY, name varchar(40) NOT NULL,
        category_id smallint REFERENCES categories, price real, stock smallint,
        discontinued integer NOT NULL);
      CREATE TABLE orders(order_id smallint PRIMARY KEY, customer_id char(5) REFERENCES customers,
        ordered date, shipped date, freight real, address varchar(60));
      CREATE TABLE order_details(order_id smallint REFERENCES orders,
        product_id smallint REFERENCES products, price real NOT NULL, quantity smallint NOT NULL,
        discount real NOT NULL, exact numeric, PRIMARY KEY (order_id, product_id));
      INSERT INTO categories VALUES (1, 'Tea', '\\x00ff27'), (2, 'Fish', '');
      INSERT INTO customers VALUES ('TEAGO', 'Tea & Go', 'N''th', 'ab'), ('X', 'Short', NULL, NULL);
      INSERT INTO products VALUES (1, 'Green', 1, 0.1, 3, 0), (2, 'Cod', 2, 21.35, NULL, 1);
      INSERT INTO orders VALUES (10, 'TEAGO', '1996-07-04', NULL, 32.38, 'Way 1'),
        (11, 'X', NULL, '1996-07-05', 0.3, NULL);
      INSERT INTO order_details VALUES (10, 1, 0.1, 12, 0.05, 1.10), (10, 2, 21.35, 1, 0, NULL)
      """, ["categories", "customers", "products", "orders", "order_details"],
      device: """
        UPDATE categories SET picture = x'0102' WHERE category_id = 2;
        INSERT INTO customers(customer_id, company) VALUES ('NEWCO', 'New');
        INSERT INTO customers(customer_id, company) VALUES ('PAD  ', 'Blanks');
        UPDATE orders SET customer_id = 'NEWCO', shipped = '1996-08-01' WHERE order_id = 11;
        UPDATE order_details SET quantity = 99 WHERE order_id = 10 AND product_id = 1;
        INSERT INTO order_details VALUES (11, 2, 9.65, 5, 0.15, '1.230')
        """,
      program: """
        UPDATE customers SET company = 'Tea and Go' WHERE customer_id = 'TEAGO';
        UPDATE order_details SET product_id = 1 WHERE order_id = 11;
        DELETE FROM order_details WHERE product_id = 2
        """,
      eventually: [
        (
          "SELECT customer_id::text, shipped::text, freight::text FROM orders WHERE order_id = 11",
          [["NEWCO", "1996-08-01", "0.3"]]
        ), ("SELECT encode(picture, 'hex') FROM categories ORDER BY 1", [["00ff27"], ["0102"]]),
        (
          "SELECT price::text, quantity::text, exact::text FROM order_details ORDER BY order_id, product_id",
          [["0.1", "99", "1.10"], ["21.35", "1", nil], ["9.65", "5", "1.230"]]
        ),
      ],
      device: [
        ("SELECT customer_id FROM customers ORDER BY 1", [["NEWCO"], ["TEAGO"], ["X"]]),
        ("SELECT code FROM customers WHERE company = 'Tea and Go'", [["ab"]]),
        (
          "SELECT order_id, product_id, price, quantity, exact FROM order_details ORDER BY 1",
          [[10, 1, 0.1, 99, "1.10"], [11, 1, 9.65, 5, "1.230"]]
        ),
      ])
  }

  @Test("a web project: identities, many-to-many tables, JSON, lengths, checks and unique pairs")
  func project() async throws {
    try await expectAdopted(
      """
      CREATE TABLE content_types(id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        app varchar(100) NOT NULL, model varchar(100) NOT NULL, UNIQUE (app, model));
      CREATE TABLE accounts(id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        password varchar(128) NOT NULL, last_login timestamptz, is_staff boolean NOT NULL,
        username varchar(150) NOT NULL UNIQUE, email varchar(254) NOT NULL, joined timestamptz NOT NULL);
      CREATE TABLE roles(id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        name varchar(150) NOT NULL UNIQUE);
      CREATE TABLE accounts_roles(id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        account_id integer NOT NULL REFERENCES accounts DEFERRABLE INITIALLY DEFERRED,
        role_id integer NOT NULL REFERENCES roles DEFERRABLE INITIALLY DEFERRED,
        UNIQUE (account_id, role_id));
      CREATE INDEX accounts_like ON accounts (username varchar_pattern_ops);
      CREATE TABLE sessions(session_key varchar(40) PRIMARY KEY, data text NOT NULL,
        expires timestamptz NOT NULL);
      CREATE TABLE actions(id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL, object text, flag smallint NOT NULL CHECK (flag >= 0),
        account_id integer NOT NULL REFERENCES accounts DEFERRABLE INITIALLY DEFERRED,
        content_type_id integer REFERENCES content_types DEFERRABLE INITIALLY DEFERRED,
        changes jsonb NOT NULL, ip inet, spent interval, token uuid NOT NULL);
      INSERT INTO content_types(app, model) VALUES ('auth', 'user'), ('auth', 'group');
      INSERT INTO accounts(password, is_staff, username, email, joined)
        SELECT 'x' || i, i % 2 = 0, 'user' || i, 'u@example.org', '2026-01-01 12:00+00'
        FROM generate_series(1, 40) i;
      INSERT INTO roles(name) VALUES ('editors'), ('readers');
      INSERT INTO accounts_roles(account_id, role_id)
        SELECT i, i % 2 + 1 FROM generate_series(1, 40) i;
      INSERT INTO sessions VALUES ('abc', 'e30', '2026-02-01 00:00+00');
      INSERT INTO actions(at, flag, account_id, content_type_id, changes, ip, spent, token)
        VALUES ('2026-01-02 00:00+00', 1, 3, 1, '[{"added": {}}]', '10.0.0.1', '01:30',
          'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')
      """, ["content_types", "accounts", "roles", "accounts_roles", "sessions", "actions"],
      device: """
        INSERT INTO accounts_roles(id, account_id, role_id) VALUES (1000, 3, 1);
        UPDATE accounts SET is_staff = 1, last_login = '2026-03-01T10:00:00.000000Z' WHERE id = 3;
        UPDATE actions SET flag = 2, changes = '{"a":[1,2]}', ip = '::1', spent = 'PT5M',
          object = 'it''s' WHERE id = 1;
        DELETE FROM sessions
        """,
      program: """
        DELETE FROM accounts_roles WHERE role_id = 2 AND account_id < 5;
        UPDATE actions SET ip = '10.0.0.0/8', spent = NULL, changes = '[]';
        UPDATE accounts SET email = ''
        """,
      eventually: [
        (
          "SELECT role_id::text FROM accounts_roles WHERE account_id = 3 AND role_id = 1", [["1"]]
        ),
        (
          "SELECT is_staff::text, (last_login AT TIME ZONE 'UTC')::text FROM accounts WHERE id = 3",
          [["true", "2026-03-01 10:00:00"]]
        ),
        (
          "SELECT flag::text, changes::text, host(ip), spent::text, object FROM actions",
          [["2", "{\"a\": [1, 2]}", "::1", "00:05:00", "it's"]]
        ), ("SELECT count(*)::text FROM sessions", [["0"]]),
      ],
      device: [
        ("SELECT count(*) FROM accounts_roles", [[39]]),
        ("SELECT ip, spent, changes, flag FROM actions", [["10.0.0.0/8", .null, "[]", 2]]),
        ("SELECT count(*) FROM accounts WHERE email = ''", [[40]]),
      ])
  }
}
