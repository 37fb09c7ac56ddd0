// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A token with the storage layout of Circle's: behind a proxy, with as many words before the balances. A bit of each balance says whether its
/// owner is blacklisted, and each transfer checks three accounts. It uses more gas than a plain token.
contract CircleLikeToken {
    address public owner;
    address public pauser;
    bool public paused;
    address public blacklister;
    mapping(address => bool) internal oldBlacklist;
    string public name;
    string public symbol;
    uint8 public decimals;
    string public currency;
    address public minter;
    bool internal initialized;
    mapping(address => uint256) internal balancesAndBlacklist;
    mapping(address => mapping(address => uint256)) internal allowed;
    uint256 public totalSupply;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    uint256 private constant BLACKLISTED = 1 << 255;

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(balancesAndBlacklist[account] & BLACKLISTED == 0, "Blacklistable: account is blacklisted");
        _;
    }

    function initialize(string memory name_, string memory symbol_, uint8 decimals_, address minter_) external {
        require(!initialized, "already initialized");
        initialized = true;
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
        owner = pauser = blacklister = minter = minter_;
    }

    function balanceOf(address account) public view returns (uint256) {
        return balancesAndBlacklist[account] & ~BLACKLISTED;
    }

    function allowance(address account, address spender) external view returns (uint256) {
        return allowed[account][spender];
    }

    function mint(address to, uint256 value) external {
        require(msg.sender == minter, "only the minter mints");
        totalSupply += value;
        balancesAndBlacklist[to] += value;
        emit Transfer(address(0), to, value);
    }

    function blacklist(address account) external {
        require(msg.sender == blacklister, "only the blacklister blacklists");
        balancesAndBlacklist[account] |= BLACKLISTED;
    }

    function approve(address spender, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(spender)
        returns (bool)
    {
        allowed[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        require(value <= allowed[from][msg.sender], "ERC20: transfer amount exceeds allowance");
        move(from, to, value);
        allowed[from][msg.sender] -= value;
        return true;
    }

    function move(address from, address to, uint256 value) private {
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        balancesAndBlacklist[from] = balanceOf(from) - value;
        balancesAndBlacklist[to] = balanceOf(to) + value;
        emit Transfer(from, to, value);
    }
}
