module github.com/cheapgo/cheap/lab/followed

go 1.26.0

require (
	github.com/DataDog/zstd v1.5.7
	github.com/linxGnu/grocksdb v1.7.12
	github.com/mattn/go-sqlite3 v1.14.32
	github.com/tree-sitter/go-tree-sitter v0.25.0
	github.com/tree-sitter/tree-sitter-go v0.25.0
)

require (
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/mattn/go-pointer v0.0.1 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/stretchr/testify v1.11.0 // indirect
)
